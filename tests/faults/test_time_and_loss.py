"""What time and the outside world do to a gated call: expiry, revocation, lost answers, a provider that forgets keys."""

import json
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest

from placet.client import Refused
from placet.testing import wait_until
from world import Json, World, create, delete, results, script

WITHOUT_NOTES = Path(__file__).parent / "policy_without_notes.yaml"


async def _approved(world: World, body: str = "hello") -> Json:
    turn = await world.alice.submit(script([create(body)], "done"))
    await world.approve(await world.card(turn))
    return turn


async def _admitted(world: World, card: Json) -> None:
    """The decision has reached the ledger: from here on permission is only needed for the check at claim."""
    connection = await asyncpg.connect(world.system.database_url("admission"))
    try:

        async def is_there() -> bool:
            query = "select exists (select from command where operation_id = $1)"
            return await connection.fetchval(query, card["operation_id"])

        await wait_until(is_there, "the command is in the ledger")
    finally:
        await connection.close()


@pytest.mark.req("P7", "T5")
async def test_an_unanswered_question_expires_by_nobody(world: World) -> None:
    turn = await world.alice.submit(script([delete("note-1")], "done"))
    card = await world.card(turn)
    view = await world.state(turn, "completed")
    assert [(each["state"], each["decided_by"]) for each in view["cards"]] == [("expired", "")]
    assert [message["outcome"] for message in results(view)] == ["expired"]
    assert "may be asked for again" in results(view)[0]["text"]
    with pytest.raises(Refused) as refused:
        await world.approve(card)
    assert (refused.value.status, refused.value.code) == (409, "expired")
    assert await world.effects() == []


@pytest.mark.req("A7")
async def test_a_policy_that_changed_after_the_approval_stops_the_dispatch(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    world.system.kill("executor")
    await world.approve(card)
    await world.system.stop("permission")
    await world.system.start("permission", PLACET_POLICY_FILE=str(WITHOUT_NOTES))
    await world.system.start("executor")
    view = await world.state(turn, "completed")
    await world.system.stop("permission")
    assert [message["outcome"] for message in results(view)] == ["denied"]
    assert "notes are closed" in results(view)[0]["text"]
    assert await world.requests("POST") == []


@pytest.mark.req("A7")
async def test_without_an_answer_of_permission_nothing_is_dispatched(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    world.system.kill("executor")
    await world.approve(card)
    await _admitted(world, card)
    world.system.kill("permission")
    await world.system.start("executor")

    async def refused() -> bool:
        lines = world.system.services["executor"].lines()
        return any(line.get("action") == "message.waits" and "NoAnswer" in line["error"] for line in lines)

    await wait_until(refused, "the executor has asked for a claim and got no answer")
    assert await world.requests("POST") == []
    await world.system.start("permission")
    await world.state(turn, "completed", within=60)
    assert len(await world.effects()) == 1


@pytest.mark.req("E2", "E4", "A9")
@pytest.mark.parametrize("fault", [{"drop_responses": 1}, {"error_after_effect": 1}, {"garbage_responses": 1}])
async def test_a_lost_answer_is_asked_for_again_under_the_same_key(world: World, fault: Json) -> None:
    await world.fault(**fault)
    turn = await _approved(world)
    view = await world.state(turn, "completed")
    assert [message["outcome"] for message in results(view)] == ["succeeded"]
    (effect,) = await world.effects()
    sent = await world.requests("POST")
    assert len(sent) == 2
    assert {asked["operation_key"] for asked in sent} == {effect["operation_key"]}


@pytest.mark.req("E3", "E4")
async def test_a_lost_answer_of_a_provider_that_forgets_keys_ends_unknown(world: World) -> None:
    await world.system.stop("executor")
    await world.system.start("executor", PLACET_CRM_REPLAY_SECONDS="0")
    await world.fault(drop_responses=1, forget_keys=True)
    turn = await _approved(world)
    view = await world.state(turn, "completed")
    await world.system.stop("executor")
    assert [message["outcome"] for message in results(view)] == ["unknown"]
    assert "may or may not have been executed" in results(view)[0]["text"]
    assert (len(await world.effects()), len(await world.requests("POST"))) == (1, 1)


@pytest.mark.req("E4", "A6")
async def test_a_worker_lost_at_a_provider_that_forgets_keys_ends_unknown(world: World) -> None:
    crash = world.crash_at("executor", "command.ready.v1", "after_provider")
    await world.system.stop("executor")
    await world.system.start("executor", PLACET_CRM_REPLAY_SECONDS="0", **crash)
    await world.fault(forget_keys=True)
    turn = await _approved(world)
    await world.system.services["executor"].ended()
    await world.system.start("executor", PLACET_CRM_REPLAY_SECONDS="0")
    view = await world.state(turn, "completed")
    await world.system.stop("executor")
    assert [message["outcome"] for message in results(view)] == ["unknown"]
    assert len(await world.effects()) == 1


@pytest.mark.req("E4", "A6", "P7")
async def test_an_effect_that_may_have_happened_does_not_expire_into_not_executed(world: World) -> None:
    first = await _approved(world, "the note to delete")
    note = json.loads(results(await world.state(first, "completed"))[0]["text"])["note_id"]
    await world.system.stop("executor")
    await world.system.start("executor", **world.crash_at("executor", "command.ready.v1", "after_provider"))
    turn = await world.alice.submit(script([delete(note)], "done"))
    await world.approve(await world.card(turn))  # the policy of these tests lets a deletion be valid for four seconds
    await world.system.services["executor"].ended()
    view = await world.state(turn, "completed")
    assert [message["outcome"] for message in results(view)] == ["unknown"]
    assert "may or may not have been executed" in results(view)[0]["text"]
    assert [effect["kind"] for effect in await world.effects()] == ["note.create", "note.delete"]


@pytest.mark.req("A7", "P7")
async def test_b33_what_could_not_be_sent_while_it_was_valid_is_not_sent_later(world: World) -> None:
    first = await _approved(world, "the note to keep")
    note = json.loads(results(await world.state(first, "completed"))[0]["text"])["note_id"]
    turn = await world.alice.submit(script([delete(note)], "done"))
    card = await world.card(turn)
    await world.fault(refuse_status=429)
    await world.approve(card)

    async def refused() -> bool:
        return bool(await world.requests("DELETE"))

    await wait_until(refused, "a request was refused while the approval was valid")

    async def over() -> bool:
        return datetime.now(UTC) > datetime.fromisoformat(card["expires_at"])

    await wait_until(over, "the approval has run out")
    await world.fault()
    view = await world.state(turn, "completed")
    assert [message["outcome"] for message in results(view)] == ["expired"]
    assert [effect["kind"] for effect in await world.effects()] == ["note.create"]


@pytest.mark.req("E2", "E3", "E4")
async def test_an_uncertain_command_is_not_repeated_once_the_provider_may_have_forgotten_its_key(world: World) -> None:
    settings = {"PLACET_CRM_REPLAY_SECONDS": "4"}
    await world.system.stop("executor")
    await world.system.start("executor", **settings, **world.crash_at("executor", "command.ready.v1", "after_provider"))
    turn = await _approved(world)
    await world.system.services["executor"].ended()
    view = await world.state(turn, "completed")
    await world.system.start("executor", **settings)
    assert [message["outcome"] for message in results(view)] == ["unknown"]
    assert "may or may not have been executed" in results(view)[0]["text"]
    await world.system.stop("executor")
    assert (len(await world.effects()), len(await world.requests("POST"))) == (1, 1)


@pytest.mark.req("E5")
async def test_a_resource_that_moved_since_the_approval_is_not_touched(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    moved = await world.provider.put(f"/_control/customers/{world.tenant}/C-42", json={"status": "closed"})
    moved.raise_for_status()
    await world.approve(card)
    view = await world.state(turn, "completed")
    assert [message["outcome"] for message in results(view)] == ["denied"]
    assert "precondition_failed" in results(view)[0]["text"]
    assert await world.effects() == []


@pytest.mark.req("E4")
async def test_a_provider_that_refuses_is_a_denial_and_never_unknown(world: World) -> None:
    await world.fault(refuse_status=422)
    turn = await _approved(world)
    view = await world.state(turn, "completed")
    assert [message["outcome"] for message in results(view)] == ["denied"]
    assert (await world.effects(), len(await world.requests("POST"))) == ([], 1)


@pytest.mark.req("A6", "E2")
async def test_a_provider_that_is_slow_for_longer_than_a_lease_gets_one_effect(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    await world.fault(slow_seconds=1.3)
    await world.approve(card)

    async def sent_under_two_claims() -> bool:
        return len(await world.requests("POST")) >= 4

    await wait_until(sent_under_two_claims, "requests were given up and sent again")
    await world.fault()
    view = await world.state(turn, "completed", within=60)
    assert [message["outcome"] for message in results(view)] == ["succeeded"]
    assert len(await world.effects()) == 1


@pytest.mark.req("A2", "M4")
async def test_a_target_that_cannot_be_looked_up_rejects_the_call_and_holds_up_nobody(world: World) -> None:
    waiting = await world.alice.submit(script([create("hello", "C-7")], "done"))
    card = await world.card(waiting)
    await world.system.stop("admission")
    await world.system.start("admission", PLACET_RESOLVE_SECONDS="1.5")
    world.system.kill("executor")
    turns = [await world.alice.submit(script([create("hello", f"C-{number}")], "done")) for number in range(70)]
    await world.approve(card)
    for turn in turns:
        view = await world.state(turn, "completed", within=60)
        assert [message["outcome"] for message in results(view)] == ["rejected"]
        assert "could not be looked up now" in results(view)[0]["text"]
    await world.system.start("executor")
    await world.state(waiting, "completed", within=60)
    await world.system.stop("admission")
    assert len(await world.effects()) == 1
