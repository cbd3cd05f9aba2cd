"""Failures that others met (the cases by their numbers), at the real five services."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import asyncpg
import httpx2
import pytest
import redis

from placet.client import Refused
from placet.local.issuer import APPROVER
from placet.testing import wait_until
from world import World, create, delete, read, results, script


@pytest.mark.req("T1", "T3", "T4", "T6")
async def test_b05_a_finished_sibling_keeps_its_result_while_its_neighbour_waits(world: World) -> None:
    turn = await world.alice.submit(script([read("r-1"), create("hello", "r-1"), read("r-2")], "done"))
    card = await world.card(turn)
    before = await world.state(turn, "awaiting_approval")
    while len(results(before)) < 2:
        before = await world.state(turn, "awaiting_approval")
    world.system.kill("planner")
    await world.system.start("planner")
    await world.approve(card)
    view = await world.state(turn, "completed")
    known = {message["tool_call_id"]: message["text"] for message in results(before)}
    assert len(results(view)) == 3
    assert {call: text for call, text in _by_call(view).items() if call in known} == known
    assert len([asked for asked in await world.requests("GET") if asked["operation_key"]]) == 2
    assert len(await world.effects()) == 1
    asked = [line for line in world.system.services["planner"].lines() if line.get("action") == "model.asked"]
    assert [line["results"] for line in asked] == [3]


@pytest.mark.req("T1", "T5", "P2")
async def test_b07_a_pause_that_a_handler_fails_to_note_is_still_a_pause(world: World) -> None:
    """A layer behind the question that raises: it is tried again, given up, and changes nothing of what waits."""
    async with world.planner_fault("tool_call", "new.state = 'awaiting_approval'"):
        turn = await world.alice.submit(script([create("hello")], "done"))

        async def parked() -> bool:
            query = "select count(*) from parked where position($1 in convert_from(body, 'UTF8')) > 0"
            return await _scalar(world, "planner", query, turn["turn_id"]) == 1

        await wait_until(parked, "the planner has given up to note the pause")
        view = await world.state(turn, "awaiting_approval")
        assert (results(view), [each["state"] for each in view["cards"]]) == ([], ["pending"])
    await _asked_once(world, turn)
    await world.approve(await world.card(turn))
    assert [result["outcome"] for result in results(await world.state(turn, "completed"))] == ["succeeded"]
    assert len(await world.effects()) == 1


async def _asked_once(world: World, turn: dict[str, Any]) -> None:
    """Permission was asked once, and asked people once."""
    for service, table in (("admission", "proposal"), ("permission", "approval")):
        query = f"select count(*) from {table} where turn_id = $1"
        assert await _scalar(world, service, query, turn["turn_id"]) == 1


@pytest.mark.req("T1", "T5", "P2")
@pytest.mark.parametrize("end", ["sigterm", "sigkill"])
async def test_b07_a_pause_is_no_error_and_invents_no_result(world: World, end: str) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    if end == "sigterm":
        assert await world.system.services["planner"].terminate() == 0
    else:
        world.system.kill("planner")
    await world.system.start("planner")
    view = await world.state(turn, "awaiting_approval")
    assert results(view) == []
    assert [each["state"] for each in view["cards"]] == ["pending"]
    await _asked_once(world, turn)
    await world.approve(card)
    await world.state(turn, "completed")
    assert len(await world.effects()) == 1


@pytest.mark.req("M4", "T1", "T4", "T8")
async def test_b17_an_answer_that_the_planner_cannot_take_up_is_tried_again_on_request(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    conversation, name = turn["conversation_id"], turn["turn_id"]
    with pytest.raises(Refused) as early:
        await world.alice.retry(conversation, name)
    assert (early.value.status, early.value.code) == (409, "not_stalled")
    async with world.planner_fault("message", "new.role = 'tool'"):
        await world.approve(await world.card(turn))
        stalled = await world.state(turn, "resume_failed")
        assert stalled["turns"][0]["reason"].startswith("tool_call.settled.v1 could not be taken up")
        assert results(stalled) == []
        await world.alice.retry(conversation, name)
        await _stalled_attempts(world, conversation, [1, 2])
        assert await _scalar(world, "planner", "select attempts from parked where turn_id = $1", name) == 2
    with pytest.raises(Refused) as foreign:
        await world.bob.retry(conversation, name)
    assert foreign.value.status == 404
    await world.alice.retry(conversation, name)
    view = await world.state(turn, "completed")
    assert [message["role"] for message in view["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert len(await world.effects()) == 1
    assert await _scalar(world, "planner", "select count(*) from parked where turn_id = $1", name) == 0
    asked = [line for line in world.system.services["planner"].lines() if line.get("action") == "model.asked"]
    assert [line["results"] for line in asked][-2:] == [0, 1]


@pytest.mark.req("M4", "T3", "T8")
async def test_b17_a_result_that_is_stuck_can_be_tried_again_after_its_sibling_moved_the_turn(world: World) -> None:
    async with world.planner_fault("message", "new.role = 'tool' and new.text like '%C-42%'"):
        turn = await world.alice.submit(script([read("C-42"), create("hello", "r-1")], "done"))
        card = await world.card(turn)

        async def stalled() -> dict[str, Any] | None:
            view = await world.alice.conversation(turn["conversation_id"])
            return view if view["turns"][0]["stalled"] else None

        assert (await wait_until(stalled, "the turn stands still for the read"))["state"] == "awaiting_approval"
        await world.approve(card)
        view = await world.state(turn, "resume_failed")
        while not results(view):
            view = await world.state(turn, "resume_failed")
    await world.alice.retry(turn["conversation_id"], turn["turn_id"])
    view = await world.state(turn, "completed")
    assert [result["outcome"] for result in results(view)] == ["succeeded", "succeeded"]
    assert view["turns"][0]["stalled"] is None
    assert len(await world.effects()) == 1


async def _stalled_attempts(world: World, conversation: str, expected: list[int]) -> None:
    async with aclosing(world.alice.events(conversation)) as events:
        told: list[int] = []
        async for event in events:
            if event.type == "turn.stalled.v1":
                told.append(event.data["attempt"])
                if len(told) == len(expected):
                    break
    assert told == expected


@pytest.mark.req("T13", "P2", "P10")
async def test_b12_a_reused_tool_call_id_authorises_nothing(world: World) -> None:
    first = await world.alice.submit(script([create("A", "r-1", hint="call_0")], "one"))
    await world.approve(await world.card(first))
    await world.state(first, "completed")
    conversation = first["conversation_id"]
    second = await world.alice.submit(script([delete("note-1", "r-1", hint="call_0")], "two"), conversation_id=conversation)
    other = await world.alice.submit(script([create("B", "r-2", hint="call_0")], "three"))
    twins = await world.alice.submit(script([create("C", hint="call_0"), create("D", hint="call_0")], "four"))
    foreign = await world.bob.submit(script([create("E", "r-1", hint="call_0")], "five"))
    cards = [await world.card(second), await world.card(other), await world.card(twins)]
    cards.append(await world.card(foreign, who=world.bob))
    assert len({card["tool_call_id"] for card in cards}) == len({card["interrupt_id"] for card in cards}) == 4
    assert [effect["payload"] for effect in await world.effects()] == [{"body": "A"}]
    await world.approve(cards[2])
    (next_of_twins,) = await _after(world, twins, cards[2])
    assert next_of_twins["arguments"]["body"] == "D"
    await world.deny(next_of_twins)
    view = await world.state(twins, "completed")
    by_call = {message["tool_call_id"]: message["outcome"] for message in results(view)}
    assert by_call == {cards[2]["tool_call_id"]: "succeeded", next_of_twins["tool_call_id"]: "denied"}
    assert [effect["payload"]["body"] for effect in await world.effects()] == ["A", "C"]


_ODD_ANSWERS: list[Any] = [
    {},
    {"decision": None},
    {"decision": "yes"},
    {"decision": True},
    {"decision": 1},
    {"approved": True},
    {"decision": "Approve"},
    {"decision": "approve", "extra": 1},
    {"decision": ["approve"]},
]


@pytest.mark.req("P5")
async def test_b13_an_odd_answer_leaves_the_card_open(world: World) -> None:
    turn = await world.alice.submit(script([delete("note-1")], "done"))
    card = await world.card(turn)
    for answer in _ODD_ANSWERS:
        with pytest.raises(Refused) as refused:
            await world.ann.answer(card["interrupt_id"], answer | {"digest": card["digest"]})
        assert refused.value.status == 422, answer
    twice = f'{{"decision":"deny","decision":"approve","digest":"{card["digest"]}"}}'
    assert (await _post_raw(world, card, twice.encode()))["code"] == "duplicate_key"
    assert (await world.ann.approval(card["interrupt_id"]))["state"] == "pending"
    assert await world.effects() == []
    await world.ann.answer(card["interrupt_id"], {"decision": "cancelled", "digest": card["digest"]})
    view = await world.state(turn, "completed")
    assert [message["outcome"] for message in results(view)] == ["denied"]
    assert await world.effects() == []


@pytest.mark.req("T1", "M5", "P4")
async def test_b18_open_cards_outlive_every_process(world: World) -> None:
    turns = [await world.alice.submit(script([create(f"note {number}")], "done")) for number in range(51)]
    cards = [await world.card(turn) for turn in turns]
    seen = {card["interrupt_id"]: (card["digest"], card["expires_at"]) for card in cards}
    asked = len(_asked(world))
    world.system.kill()
    assert _keys_in_redis(world) == []  # so there is nothing that a flush of Redis could lose
    await world.system.start()
    listed = {item["interrupt_id"]: (item["digest"], item["expires_at"]) async for item in world.ann.approvals()}
    assert listed == seen
    assert len(_asked(world)) == asked
    await world.approve(cards[0])
    await world.state(turns[0], "completed")
    assert len(await world.effects()) == 1


@pytest.mark.req("P4")
async def test_b19_twenty_clicks_are_one_decision(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    clicks = [world.approve(card, who) for _ in range(10) for who in (world.ann, world.amy)]
    answers = await asyncio.gather(*clicks, return_exceptions=True)
    won = [answer for answer in answers if isinstance(answer, dict)]
    lost = [answer for answer in answers if isinstance(answer, Refused)]
    assert len(won) == len(lost) == 10
    assert len({json.dumps(answer, sort_keys=True) for answer in won}) == 1
    assert {(each.status, each.problem["decided_by"], each.problem["state"]) for each in lost} == {
        (409, won[0]["decided_by"], "approved")
    }
    await world.state(turn, "completed")
    assert len(await world.effects()) == 1


@pytest.mark.req("P4")
async def test_b19_of_approvals_and_denials_at_once_the_first_stands(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    clicks = [click for _ in range(10) for click in (world.approve(card, world.ann), world.deny(card, world.amy))]
    answers = await asyncio.gather(*clicks, return_exceptions=True)
    states = {answer["state"] for answer in answers if isinstance(answer, dict)}
    assert len(states) == 1
    await world.state(turn, "completed")
    assert len(await world.effects()) == (1 if states == {"approved"} else 0)
    with pytest.raises(Refused):
        await (world.deny if states == {"approved"} else world.approve)(card, await world.person("abe", *APPROVER))
    assert (await world.ann.approval(card["interrupt_id"]))["state"] in states


@pytest.mark.req("T1", "P4")
async def test_b22_an_answer_faster_than_the_planner_is_kept(world: World) -> None:
    turn = await world.alice.submit(script([create("first")], [create("second")], "done"))
    await world.card(turn)
    world.system.kill("planner")
    (card,) = await world.cards(turn)
    await world.approve(card)

    async def effect() -> bool:
        return len(await world.effects()) == 1

    await wait_until(effect, "the approved call has happened while the planner is away")
    await world.system.start("planner")
    (later,) = await _after(world, turn, card)
    assert later["arguments"]["body"] == "second"
    with pytest.raises(Refused) as refused:
        await world.deny(card)
    assert refused.value.status == 409
    assert (await world.ann.approval(later["interrupt_id"]))["state"] == "pending"
    await world.deny(later)
    await world.state(turn, "completed")
    assert len(await world.effects()) == 1


@pytest.mark.req("A1", "A3", "P10")
async def test_b27_two_unicode_forms_are_two_commands_and_identifiers_have_one(world: World) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    turn = await world.alice.submit(script([create(composed)], [create(decomposed)], "done"))
    first = await world.card(turn)
    await world.approve(first)
    (second,) = await _after(world, turn, first)
    assert first["digest"] != second["digest"]
    with pytest.raises(Refused) as refused:
        await world.ann.decide(second["interrupt_id"], "approve", first["digest"])
    assert (refused.value.status, refused.value.code) == (409, "digest_mismatch")
    await world.approve(second)
    await world.state(turn, "completed")
    assert [effect["payload"]["body"] for effect in await world.effects()] == [composed, decomposed]
    turn = await world.alice.submit(script([create("x", decomposed)], "done"))
    view = await world.state(turn, "completed")
    assert [(message["outcome"], "customer_id" in message["text"]) for message in results(view)] == [("rejected", True)]


@pytest.mark.req("A1", "A3")
@pytest.mark.parametrize(
    "raw",
    [
        '{"customer_id":"C-42","body":"a","body":"b"}',
        '{"customer_id":"C-42","bod\\u0079":"a","body":"b"}',
        '{"customer_id":"C-42","body":{"a":{"b":1,"b":2}}}',
        '{"customer_id":"C-42","body":NaN}',
        '{"customer_id":"C-42","body":9007199254740993}',
        '{"customer_id":"C-42","body":"a\\u0000b"}',
        '{"customer_id":"C-42","body":"\\ud800"}',
    ],
)
async def test_b29_arguments_with_two_meanings_reach_nobody(world: World, raw: str) -> None:
    turn = await world.alice.submit(script([{"tool": "crm_note_create", "raw": raw}], "done"))
    view = await world.state(turn, "completed")
    assert [message["outcome"] for message in results(view)] == ["rejected"]
    assert view["cards"] == []
    assert await world.effects() == []


def _by_call(view: dict[str, Any]) -> dict[str, str]:
    return {message["tool_call_id"]: message["text"] for message in results(view)}


def _asked(world: World) -> list[str]:
    log = (world.system.folder / "planner.log").read_text()
    return [line for line in log.splitlines() if '"action": "model.asked"' in line]


async def _after(world: World, turn: dict[str, Any], card: dict[str, Any]) -> list[dict[str, Any]]:
    async def look() -> list[dict[str, Any]]:
        return [each for each in await world.cards(turn) if each["interrupt_id"] != card["interrupt_id"]]

    return await wait_until(look, "the next card is out")


async def _scalar(world: World, service: str, query: str, *values: Any) -> Any:
    connection = await asyncpg.connect(world.system.database_url(service))
    try:
        return await connection.fetchval(query, *values)
    finally:
        await connection.close()


async def _post_raw(world: World, card: dict[str, Any], body: bytes) -> dict[str, Any]:
    token = world.system.token("ann", world.tenant, *APPROVER)
    async with httpx2.AsyncClient(base_url=world.system.url) as client:
        response = await client.post(
            f"/v1/approvals/{card['interrupt_id']}/decision", content=body, headers={"Authorization": f"Bearer {token}"}
        )
    assert response.status_code == 422
    return response.json()


def _keys_in_redis(world: World) -> list[Any]:
    with redis.Redis.from_url(world.system.backing.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        return list(client.scan_iter(f"{world.system.run.name}*"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
