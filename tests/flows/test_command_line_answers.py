"""The `placet` command for who answers: approvals, card, approve, deny, at the real API."""

import json
import re
from typing import Any

import pytest

from placet.testing import wait_until
from terminal import Terminal, answering, http
from world import World, create, delete, script


async def closed(world: World, card: dict[str, Any]) -> None:
    """Wait until the decision has come to where cards are read."""

    async def look() -> bool:
        return (await world.ann.approval(card["interrupt_id"]))["state"] != "pending"

    await wait_until(look, f"{card['interrupt_id']} is closed")


async def open_card(world: World, *calls: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A turn that waits for an approver, and its card."""
    turn = await world.alice.submit(script(list(calls or (create("hello"),)), "done"))
    return turn, await world.card(turn)


@pytest.mark.req("U4", "P12", "P3", "P4")
async def test_a_person_asks_and_another_one_approves(world: World, terminal: Terminal) -> None:
    turn = await terminal.json("submit", script([create("hello")], "It is done."))
    card = await world.card(turn)
    listed = await terminal.run("approvals")
    assert card["interrupt_id"] in listed.out
    assert "crm.note.create  C-42      alice     2 d 23 h" in listed.out
    shown = await terminal.run("card", card["interrupt_id"])
    for part in ("Add a note to a customer", '"hello"', "C-42 at revision", card["digest"], card["policy_version"], "UTC"):
        assert part in shown.out
    approved = await terminal.run("approve", card["interrupt_id"], "--comment", "go on", typed="y\n")
    assert (approved.code, card["digest"] in approved.out) == (0, True)
    assert "The decision stands: approved by ann at " in approved.out
    await world.state(turn, "completed")
    await closed(world, card)
    show = await terminal.run("show", turn["conversation_id"])
    assert f"{turn['conversation_id']} is completed" in show.out
    assert "result      crm.note.create: succeeded" in show.out
    assert "agent       It is done." in show.out
    assert re.search(rf"{card['interrupt_id']} +approved +crm.note.create +C-42 +ann", show.out)
    assert len(await world.effects()) == 1
    assert (await terminal.run("approvals")).out == "Nothing waits for an answer.\n"


@pytest.mark.req("U4", "P4")
async def test_a_denial_stands_against_another_answer(world: World, terminal: Terminal) -> None:
    turn, card = await open_card(world, delete("N-1"))
    denied = await terminal.run("deny", card["interrupt_id"], "--yes", "--as", "amy", "--comment", "wrong customer")
    assert denied.code == 0
    assert "The decision stands: denied by amy at " in denied.out
    await world.state(turn, "completed")
    await closed(world, card)
    late = await terminal.run("approve", card["interrupt_id"], typed="n\n")
    assert (late.code, "[y/N]" in late.out) == (1, False)
    assert late.err.startswith("Decided already: denied by amy at ")
    again = await terminal.run("deny", card["interrupt_id"], "--as", "amy")
    assert (again.code, again.err) == (0, "")
    assert "The decision stands: denied by amy at " in again.out
    shown = await terminal.run("card", card["interrupt_id"])
    assert 'denied by amy: "wrong customer"' in shown.out
    assert await world.effects() == []


@pytest.mark.req("U4", "P6")
async def test_nobody_approves_their_own_wish(world: World, terminal: Terminal) -> None:
    _, card = await open_card(world)
    both = "placet:approval.read", "placet:approval.decide"
    terminal.more["PLACET_TOKEN"] = world.system.token("alice", world.tenant, *both)
    refused = await terminal.run("approve", card["interrupt_id"], "--yes")
    assert refused.code == 1
    assert refused.err == (
        "Refused (second person required): who asked for it cannot approve it\n"
        "The card stays open: only somebody else can approve it; you can deny it.\n"
    )
    assert (await world.ann.approval(card["interrupt_id"]))["state"] == "pending"


@pytest.mark.req("U4", "P6")
async def test_who_may_only_ask_is_told_what_is_missing(world: World, terminal: Terminal) -> None:
    _, card = await open_card(world)
    refused = await terminal.run("approve", card["interrupt_id"], "--yes", "--as", "alice")
    assert refused.code == 1
    assert "the token lacks the scope placet:approval.read" in refused.err
    assert "--as" in refused.err


@pytest.mark.req("U4", "P5")
async def test_without_a_clear_yes_nothing_is_sent(world: World, terminal: Terminal) -> None:
    _, card = await open_card(world)
    no = await terminal.run("approve", card["interrupt_id"], typed="n\n")
    assert (no.code, no.err) == (1, "Nothing was sent; the card stays as it is.\n")
    nobody = await terminal.run("approve", card["interrupt_id"])
    assert (nobody.code, "--yes" in nobody.err) == (2, True)
    other = await terminal.run("approve", card["interrupt_id"], "--yes", "--digest", "sha256:" + "0" * 64)
    assert other.code == 1
    assert other.err.startswith("Refused (digest mismatch): the answer is about other bytes than the question\n")
    assert (await world.ann.approval(card["interrupt_id"]))["state"] == "pending"


@pytest.mark.req("U4", "P3")
async def test_a_card_writes_out_what_does_not_show(world: World, terminal: Terminal) -> None:
    body = "pay \u202eeno\u202c\u200b \x1b[2J \u2028 \U000e0041\u3164\\u200b end"
    turn, card = await open_card(world, create(body))
    shown = await terminal.run("card", card["interrupt_id"])
    assert r'"pay \u202eeno\u202c\u200b \u001b[2J \u2028 \U000e0041\u3164\\u200b end"' in shown.out
    assert "hold characters that do not show" in shown.out
    denied = await terminal.run("deny", card["interrupt_id"], "--yes", "--comment", "a\u202eb")
    assert denied.code == 0
    told = await terminal.run_all(*([command, turn["conversation_id"]] for command in ("show", "watch")))
    for ran in (shown, denied, *told):
        assert (ran.code, ran.err) == (0, "")
        assert all(sign.isprintable() or sign == "\n" for sign in ran.out)
    assert (await terminal.json("card", card["interrupt_id"]))["arguments"]["body"] == body


@pytest.mark.req("U4")
async def test_a_card_without_hidden_characters_has_no_warning(world: World, terminal: Terminal) -> None:
    _, card = await open_card(world, create("Grüße,\nзавтра 😀"))
    shown = await terminal.run("card", card["interrupt_id"])
    assert r'"Grüße,\nзавтра 😀"' in shown.out
    assert "do not show" not in shown.out


@pytest.mark.req("U4", "P4")
async def test_a_decision_that_is_not_answered_yet_is_not_called_decided(world: World, terminal: Terminal) -> None:
    _, card = await open_card(world)
    shown = json.dumps(await world.ann.approval(card["interrupt_id"]))
    terminal.more["PLACET_TOKEN"] = "a-token"
    async with answering(http("200 OK", shown), http("202 Accepted", '{"code": "not_answered_yet"}')) as url:
        ran = await terminal.run("approve", card["interrupt_id"], "--yes", "--url", url)
    assert (ran.code, "stands" in ran.out) == (3, False)
    assert "giving the same answer again is harmless" in ran.err


@pytest.mark.req("U4", "P12")
async def test_machines_read_the_same_as_people(world: World, terminal: Terminal) -> None:
    turn, card = await open_card(world)

    async def listed() -> Any:
        return await terminal.json("approvals")

    (entry,) = await wait_until(listed, "the card is listed")
    assert entry == await terminal.json("card", card["interrupt_id"])
    assert (entry["digest"], entry["state"]) == (card["digest"], "pending")
    view = await terminal.json("show", turn["conversation_id"])
    assert [each["card"]["interrupt_id"] for each in view["cards"]] == [card["interrupt_id"]]
    helped = await terminal.run("approve", "--help")
    assert (helped.code, "Examples:" in helped.out) == (0, True)
