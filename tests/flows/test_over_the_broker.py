"""Frontends and approver apps that speak by message (U2, P6): what is good counts, what is not stops nothing."""

from typing import Any

import pytest

from placet.contracts.ids import new_id
from placet.contracts.message import wrap
from placet.contracts.permissions import DecisionSubmitted, PermissionDecided, PermissionRequested
from placet.contracts.turns import TurnChanged, TurnRequested
from placet.local.issuer import APPROVER, ASKER
from placet.testing import wait_until
from question import ODD_ANSWERS
from queues import heard
from world import Json, World, create, results, script


def _asked(world: World, token: str, text: str, conversation: str) -> TurnRequested:
    return TurnRequested(request_id=new_id("req"), conversation_id=conversation, text=text, authorization=token)


def _answer(card: Json, token: str, answer: Any) -> DecisionSubmitted:
    return DecisionSubmitted(interrupt_id=card["interrupt_id"], answer=answer, authorization=token)


def _approval(card: Json) -> Json:
    return {"decision": "approve", "digest": card["digest"]}


@pytest.mark.req("U2", "P6", "P4")
async def test_a_turn_is_asked_for_answered_and_followed_by_message_alone(world: World) -> None:
    frontend, approver = await world.inbox("frontend"), await world.inbox("approver")
    conversation, token = new_id("conv"), world.system.token("alice", world.tenant, *ASKER)
    await world.say("frontend", _asked(world, token, script([create("hello")], "done"), conversation))
    card = await heard(approver, PermissionRequested.wire, conversation_id=conversation)
    assert await world.effects() == []
    answer = _answer(card, world.system.token("ann", world.tenant, *APPROVER), _approval(card))
    await world.say("approver", answer)
    decided = await heard(approver, PermissionDecided.wire, interrupt_id=card["interrupt_id"])
    assert (decided["decision"], decided["decided_by"]) == ("approved", "ann")
    ended = await heard(frontend, TurnChanged.wire, conversation_id=conversation, state="completed")
    assert [message["text"] for message in ended["messages"]] == ["done"]
    view = await world.state(ended, "completed")
    assert [result["outcome"] for result in results(view)] == ["succeeded"]
    assert [effect["operation_key"] for effect in await world.effects()] == [card["operation_id"]]


@pytest.mark.req("P5", "P6", "T13")
async def test_b13_an_answer_by_message_that_is_not_good_leaves_the_card_open(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    issuer, good = world.system.issuer, _approval(card)
    ann = world.system.token("ann", world.tenant, *APPROVER)
    answers: list[tuple[str, str, Any]] = [
        ("invalid_token", "not.a.token", good),
        ("invalid_token", issuer.token("ann", world.tenant, APPROVER, seconds=-3600), good),
        ("invalid_token", issuer.token("ann", world.tenant, APPROVER, audience="placet"), good),
        ("not_found", world.system.token("ben", world.other, *APPROVER), good),
        ("second_person_required", world.system.token("alice", world.tenant, *ASKER, *APPROVER), good),
        ("not_an_approver", world.system.token("carol", world.tenant, "placet:approval.read"), good),
        ("digest_mismatch", ann, good | {"digest": "sha256:" + "0" * 64}),
        ("malformed_answer", ann, "approve"),
        ("malformed_answer", ann, None),
        *(("malformed_answer", ann, odd | {"digest": card["digest"]}) for odd in ODD_ANSWERS),
    ]
    for number, (code, token, answer) in enumerate(answers, 1):
        await world.say("approver", _answer(card, token, answer))
        assert (await _refusals(world, card, number))[-1] == code
    assert (await world.ann.approval(card["interrupt_id"]))["state"] == "pending"
    assert await world.effects() == []
    log = world.system.services["permission"].log.read_text()
    assert not [token for _, token, _ in answers if token in log]
    await world.say("approver", _answer(card, ann, good))
    await world.state(turn, "completed")
    assert len(await world.effects()) == 1


async def _refusals(world: World, card: Json, count: int) -> list[str]:
    """The codes of the answers to a card that permission has refused, once there are so many."""

    async def look() -> list[str] | None:
        lines = [line for line in world.system.services["permission"].lines() if line.get("action") == "decision.refused"]
        codes = [line["code"] for line in lines if line["interrupt_id"] == card["interrupt_id"]]
        return codes if len(codes) >= count else None

    return await wait_until(look, f"permission has refused {count} answers")


@pytest.mark.req("P5", "A3", "M4")
async def test_b29_an_answer_by_message_with_two_meanings_is_parked_and_leaves_the_card_open(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    token = world.system.token("ann", world.tenant, *APPROVER)
    message = _answer(card, token, _approval(card))
    said = wrap(message, source="approver", tenant="", conversation="", cause="", traceparent="").encode()
    twice = said.replace(b'"decision":"approve"', b'"decision":"deny","decision":"approve"')
    await world.say_bytes("approver", message.wire, twice, name := new_id("msg"))
    reason, kept = await world.parked("permission", name)
    assert reason == "duplicate_key at $.data.answer.decision"
    assert kept == twice.replace(token.encode(), b"[removed]")
    assert (await world.ann.approval(card["interrupt_id"]))["state"] == "pending"
    await world.say("approver", message)
    await world.state(turn, "completed")
    assert len(await world.effects()) == 1


@pytest.mark.req("U2", "M2")
async def test_a_turn_that_is_asked_for_several_times_by_message_is_one_turn(world: World) -> None:
    frontend, conversation = await world.inbox("frontend"), new_id("conv")
    asked = _asked(world, world.system.token("alice", world.tenant, *ASKER), script("hello"), conversation)
    await world.say("frontend", asked, times=3)
    ended = await heard(frontend, TurnChanged.wire, conversation_id=conversation, state="completed")
    await world.say("frontend", asked)
    await world.finish("ingress")
    await world.system.start("ingress")
    view = await world.state(ended, "completed")
    assert [turn["turn_id"] for turn in view["turns"]] == [ended["turn_id"]]
    assert [message["role"] for message in view["messages"]] == ["user", "assistant"]


_REFUSED: dict[str, tuple[str, tuple[str, ...], str]] = {
    "no scope": ("hello", ("placet:conversation.read",), "NotAccepted: scope_missing"),
    "blank": (" \n", ASKER, "NotAccepted: text: "),
    "expired": ("hello", (), "NotAccepted: the person's token is not valid"),
}


@pytest.mark.req("U2", "P6", "M4")
@pytest.mark.parametrize(("text", "scopes", "why"), _REFUSED.values(), ids=_REFUSED.keys())
async def test_a_turn_that_is_refused_by_message_is_parked_without_the_token_and_stops_nothing(
    world: World, text: str, scopes: tuple[str, ...], why: str
) -> None:
    frontend, conversation = await world.inbox("frontend"), new_id("conv")
    token = world.system.issuer.token("alice", world.tenant, scopes, seconds=900 if scopes else -3600)
    refused = await world.say("frontend", _asked(world, token, text, new_id("conv")))
    good = world.system.token("alice", world.tenant, *ASKER)
    await world.say("frontend", _asked(world, good, script("hello"), conversation))
    await heard(frontend, TurnChanged.wire, conversation_id=conversation, state="completed")
    reason, kept = await world.parked("ingress", refused)
    assert reason.startswith(why)
    assert b'"authorization":"[removed]"' in kept
    assert token.encode() not in kept
    assert token not in world.system.services["ingress"].log.read_text()
    query = "select count(*) from accepted_turn where tenant = $1"
    assert await world.scalar("ingress", query, world.tenant) == 1
