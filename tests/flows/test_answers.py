"""Answers of people (cases from the field by their numbers): odd, many at once, early, and hard to take up."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2
import pytest

from placet.client import Refused
from placet.contracts.permissions import DecisionRelayed, DecisionSubmitted, PermissionDecided
from placet.local.issuer import APPROVER
from placet.testing import wait_until
from question import ODD_ANSWERS
from queues import counted, heard
from world import Json, World, create, delete, read, results, script


@pytest.mark.req("P5")
async def test_b13_an_odd_answer_leaves_the_card_open(world: World) -> None:
    turn = await world.alice.submit(script([delete("note-1")], "done"))
    card = await world.card(turn)
    for answer in ODD_ANSWERS:
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


@pytest.fixture
async def two_permissions(world: World) -> AsyncGenerator[None]:
    """A second process of permission."""
    await world.system.start_copy("permission", "permission-2")
    yield
    await world.system.stop("permission-2")


@pytest.mark.req("P4", "M2", "M6")
@pytest.mark.usefixtures("two_permissions")
async def test_b19_twenty_clicks_and_their_redeliveries_are_one_decision(world: World) -> None:
    spy = await world.spy("permission")
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    clicks = [world.approve(card, who) for _ in range(10) for who in (world.ann, world.amy)]
    answers, *_ = await asyncio.gather(asyncio.gather(*clicks, return_exceptions=True), _again(world, card))
    won = [answer for answer in answers if isinstance(answer, dict)]
    lost = [answer for answer in answers if isinstance(answer, Refused)]
    assert len(won) == len(lost) == 10
    assert len({json.dumps(answer, sort_keys=True) for answer in won}) == 1
    assert {(each.status, each.problem["decided_by"], each.problem["state"]) for each in lost} == {
        (409, won[0]["decided_by"], "approved")
    }
    await world.state(turn, "completed")
    await _again(world, card)
    await world.finish("permission", "permission-2")
    assert (await counted(spy, turn))["permission.decided.v1"] == 1
    assert len(await world.effects()) == 1


@pytest.mark.req("P4", "M2", "M6")
@pytest.mark.usefixtures("two_permissions")
async def test_b19_of_approvals_and_denials_at_once_the_first_stands(world: World) -> None:
    spy = await world.spy("permission")
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
    await _again(world, card, "deny" if states == {"approved"} else "approve")
    await world.finish("permission", "permission-2")
    assert (await counted(spy, turn))["permission.decided.v1"] == 1
    assert (await world.ann.approval(card["interrupt_id"]))["state"] in states


async def _again(world: World, card: Json, decision: str = "approve") -> None:
    """Ann's and amy's answer by message, each five times the same, as the broker may deliver it."""
    for who, party, kind in (("ann", "approver", DecisionSubmitted), ("amy", "ingress", DecisionRelayed)):
        token = world.system.token(who, world.tenant, *APPROVER)
        answer = {"decision": decision, "digest": card["digest"]}
        await world.say(party, kind(interrupt_id=card["interrupt_id"], answer=answer, authorization=token), times=5)


@pytest.mark.req("T1", "P4")
async def test_b22_an_answer_that_comes_before_the_planner_notes_the_pause_is_used(world: World) -> None:
    spy = await world.spy("permission")
    async with world.planner_fault("tool_call", "new.state = 'awaiting_approval' and new.arguments like '%first%'"):
        turn = await world.alice.submit(script([create("first")], [create("second")], "done"))
        card = await world.card(turn)
        await world.approve(card)
        later = await world.next_card(turn, card)
    assert later["arguments"]["body"] == "second"
    assert [effect["payload"]["body"] for effect in await world.effects()] == ["first"]
    with pytest.raises(Refused) as refused:
        await world.deny(card)
    assert refused.value.status == 409
    decided = await heard(spy, "permission.decided.v1", interrupt_id=card["interrupt_id"])
    await world.say("permission", PermissionDecided.model_validate(decided))
    assert (await world.ann.approval(later["interrupt_id"]))["state"] == "pending"
    await world.deny(later)
    view = await world.state(turn, "completed")
    assert [each["state"] for each in view["cards"]] == ["approved", "denied"]
    assert [result["outcome"] for result in results(view)] == ["succeeded", "denied"]
    assert len(await world.effects()) == 1


@pytest.mark.req("T1", "P4", "T8")
async def test_b17_an_answer_is_shown_as_given_while_the_planner_is_away_and_used_when_it_is_back(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    world.system.kill("planner")
    await world.approve(card)

    async def effect() -> bool:
        return len(await world.effects()) == 1

    await wait_until(effect, "the approved call has happened")
    view = await world.state(turn, "executing")
    assert [(each["state"], each["decided_by"]) for each in view["cards"]] == [("approved", "ann")]
    assert results(view) == []
    assert (await world.ann.approval(card["interrupt_id"]))["state"] == "approved"
    await world.system.start("planner")
    view = await world.state(turn, "completed")
    assert [result["outcome"] for result in results(view)] == ["succeeded"]
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
        assert await world.scalar("planner", "select attempts from parked where turn_id = $1", name) == 2
    with pytest.raises(Refused) as foreign:
        await world.bob.retry(conversation, name)
    assert foreign.value.status == 404
    await world.alice.retry(conversation, name)
    view = await world.state(turn, "completed")
    assert [message["role"] for message in view["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert len(await world.effects()) == 1
    assert await world.scalar("planner", "select count(*) from parked where turn_id = $1", name) == 0
    asked = [line for line in world.system.services["planner"].lines() if line.get("action") == "model.asked"]
    assert [line["results"] for line in asked][-2:] == [0, 1]


@pytest.mark.req("M4", "T3", "T8")
async def test_b17_a_result_that_is_stuck_can_be_tried_again_after_its_sibling_moved_the_turn(world: World) -> None:
    async with world.planner_fault("message", "new.role = 'tool' and new.text like '%C-42%'"):
        turn = await world.alice.submit(script([read("C-42"), create("hello", "r-1")], "done"))
        card = await world.card(turn)

        async def stalled() -> Json | None:
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


async def _post_raw(world: World, card: Json, body: bytes) -> Json:
    token = world.system.token("ann", world.tenant, *APPROVER)
    async with httpx2.AsyncClient(base_url=world.system.url) as client:
        response = await client.post(
            f"/v1/approvals/{card['interrupt_id']}/decision", content=body, headers={"Authorization": f"Bearer {token}"}
        )
    assert response.status_code == 422
    return response.json()
