"""The `placet` command at the real API: a process of its own, which knows nothing but an address and a token."""

import json
import re
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from placet.local.tokens import write_profile
from placet.testing import wait_until
from terminal import Terminal, answering, between, end, http, until
from world import World, create, delete, read, script


@pytest.fixture
def terminal(world: World, tmp_path: Path) -> Terminal:
    """A terminal in a folder in which `make up` was called."""
    write_profile(world.system, tmp_path / ".placet" / "profile.json", world.tenant)
    return Terminal(tmp_path)


@pytest.mark.req("U4", "T8")
async def test_b17_a_turn_that_stands_still_is_let_go_on(world: World, terminal: Terminal) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    conversation = turn["conversation_id"]
    async with world.planner_fault("message", "new.role = 'tool'"):
        await world.approve(await world.card(turn))
        await world.state(turn, "resume_failed")
    shown = await terminal.run("show", conversation)
    why = "stalled     tool_call.settled.v1 could not be taken up; it is kept, and can be tried again\n"
    assert shown.out.startswith(f"{conversation} is resume failed\n{why}            placet retry {conversation}\n")
    retried = await terminal.run("retry", conversation)
    assert (retried.code, retried.out) == (0, f"It is tried again. Follow it: placet watch {conversation}\n")
    watched = await terminal.run("watch", conversation)
    assert why in watched.out
    assert watched.out.endswith("ended       completed\n")
    again = await terminal.run("retry", conversation)
    assert (again.code, "does not stand still" in again.err) == (1, True)


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
        "The card stays open: somebody else has to decide it.\n"
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


@pytest.mark.req("U4", "T8")
async def test_watch_tells_the_turn_to_its_end(world: World, terminal: Terminal) -> None:
    turn = await world.alice.submit(script([read(), create("hello")], "It is done."), key="watched")
    watching = await terminal.begin("watch", turn["conversation_id"])
    said = await until(watching, "waits")
    card = await world.card(turn)
    await world.approve(card)
    told = await end(watching, said=said)
    assert (told.code, told.err) == (0, "")
    lines = [line for line in told.out.splitlines() if not line.startswith(" ")]
    assert lines[-1] == "ended       completed"
    assert "waits       crm.note.create on C-42 waits for an approver, for 2 d 23 h" in lines
    assert "decided     crm.note.create is approved by ann" in lines
    assert "result      crm.note.create: succeeded" in lines
    assert "agent       It is done." in lines
    assert f"placet card {card['interrupt_id']}" in told.out
    states = [line.split(maxsplit=1)[1] for line in lines if line.startswith("state")]
    assert {"planning", "executing"} <= set(states)


@pytest.mark.req("U4", "T8")
async def test_submit_watches_its_own_turn_only(world: World, terminal: Terminal) -> None:
    first = await world.alice.submit(script("The first."))
    await world.state(first, "completed")
    second = await terminal.run(
        "submit", script("The second."), "--conversation", first["conversation_id"], "--watch", "--json"
    )
    turn, *events = [json.loads(line) for line in second.out.splitlines()]
    assert {event["data"]["turn_id"] for event in events} == {turn["turn_id"]}
    assert events[-1]["data"]["state"] == "completed"
    assert turn["conversation_id"] == first["conversation_id"]


@pytest.mark.req("U4", "U1")
async def test_watch_goes_on_behind_the_last_event_when_the_connection_breaks(world: World, terminal: Terminal) -> None:
    turn, card = await open_card(world)
    terminal.more["PLACET_TOKEN"] = world.system.token("alice", world.tenant, "placet:conversation.read")
    async with between(world.system) as wire:
        watching = await terminal.begin("watch", turn["conversation_id"], "--json", "--url", wire.url)
        said = await until(watching, "permission.requested.v1")
        wire.cut()
        await world.approve(card)
        told = await end(watching, said=said)
    assert told.code == 0
    assert "The connection broke; going on behind event" in told.err
    ids = [json.loads(line)["id"] for line in told.out.splitlines()]
    assert ids == list(range(1, len(ids) + 1))
    assert '"completed"' in told.out.splitlines()[-1]


@pytest.mark.req("U4")
async def test_ctrl_c_leaves_a_watch_and_the_turn_goes_on(world: World, terminal: Terminal) -> None:
    turn, card = await open_card(world)
    watching = await terminal.begin("watch", turn["conversation_id"])
    said = await until(watching, "waits")
    watching.send_signal(signal.SIGINT)
    left = await end(watching, said=said)
    assert (left.code, left.err) == (130, "Left. What was asked for goes on without you.\n")
    await world.approve(card)
    await world.state(turn, "completed")


@pytest.mark.req("U4", "P4")
async def test_a_decision_that_is_not_answered_yet_is_not_called_decided(world: World, terminal: Terminal) -> None:
    _, card = await open_card(world)
    shown = json.dumps(await world.ann.approval(card["interrupt_id"]))
    terminal.more["PLACET_TOKEN"] = "a-token"
    async with answering(http("200 OK", shown), http("202 Accepted", '{"code": "not_answered_yet"}')) as url:
        ran = await terminal.run("approve", card["interrupt_id"], "--yes", "--url", url)
    assert (ran.code, "stands" in ran.out) == (3, False)
    assert "giving the same answer again is harmless" in ran.err


@pytest.mark.req("U4")
async def test_what_is_not_placet_is_said_to_be_so(terminal: Terminal) -> None:
    terminal.more["PLACET_TOKEN"] = "a-token"
    async with answering(http("200 OK", "<html>\x1b[2J</html>")) as url:
        ran = await terminal.run("approvals", "--url", url)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Refused (unreadable): this is not Placet: <html>\\u001b[2J</html>\n"


@pytest.mark.req("U4", "U1")
async def test_an_answer_that_is_lost_can_be_asked_for_again(terminal: Terminal) -> None:
    terminal.more["PLACET_TOKEN"] = "a-token"
    async with answering(b"") as url:
        lost = await terminal.run("submit", "hello", "--url", url)
    del terminal.more["PLACET_TOKEN"]
    assert (lost.code, lost.out) == (3, "")
    key = lost.err.split()[-1]
    turns = [await terminal.json("submit", script("Here."), "--key", key) for _ in range(2)]
    assert turns[0]["turn_id"] == turns[1]["turn_id"]
    assert (await terminal.run("submit", "something else", "--key", key)).code == 1


@pytest.mark.req("U4")
async def test_what_cannot_be_reached_is_status_3(terminal: Terminal) -> None:
    terminal.more = {"PLACET_URL": "http://127.0.0.1:9", "PLACET_TOKEN": "a-token"}
    for ran in await terminal.run_all(["submit", "hello"], ["doctor"]):
        assert (ran.code, ran.out) == (3, "")
        assert ran.err.startswith("Placet at http://127.0.0.1:9 cannot be reached: nobody listens there.\n")
        assert "make up" in ran.err


@pytest.mark.req("U4", "P6")
async def test_a_bad_token_is_refused_with_advice_and_never_printed(world: World, terminal: Terminal) -> None:
    expired = world.system.issuer.token("ann", world.tenant, ["placet:approval.read"], seconds=-60)
    terminal.more["PLACET_TOKEN"] = expired
    for ran in await terminal.run_all(["approvals"], ["doctor"]):
        assert ran.code == 1
        assert "Take a fresh token" in ran.out + ran.err
        assert expired not in ran.out + ran.err
    terminal.more["PLACET_TOKEN"] = "two words"
    assert (await terminal.run("approvals")).code == 2


@pytest.mark.req("U4")
async def test_doctor_tells_what_each_token_may(world: World, terminal: Terminal) -> None:
    ran = await terminal.run("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert f"{world.system.url} answers" in ran.out
    assert re.search(rf"token of alice of {world.tenant}, for 11 h 59 min .*\n +may: submit; watch, show\n", ran.out)
    assert re.search(rf"token of amy of {world.tenant}, .*\n +may: approvals, card; approve, deny\n", ran.out)
    report = await terminal.json("doctor", "--as", "ann")
    assert [(each["subject"], each["valid"]) for each in report["tokens"]] == [("ann", True)]
    profile = json.loads((terminal.folder / ".placet" / "profile.json").read_text())
    assert not any(token in ran.out + json.dumps(report) for token in profile["tokens"].values())


@pytest.mark.req("U4", "P6")
async def test_doctor_looks_at_the_audience_that_an_answer_takes(world: World, terminal: Terminal) -> None:
    both = ["placet:approval.read", "placet:approval.decide"]
    terminal.more["PLACET_TOKEN"] = world.system.issuer.token("ann", world.tenant, both, audience="placet")
    ran = await terminal.run("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert "     may: approvals, card\n     may not: approve, deny: that takes the audience of permission too" in ran.out
    terminal.more["PLACET_TOKEN"] = world.system.issuer.token("ann", world.tenant, both, audience="placet-permission")
    assert (await terminal.run("doctor")).code == 1


@pytest.mark.req("U4")
async def test_usage_is_status_2_and_says_what_to_do(world: World, terminal: Terminal, tmp_path: Path) -> None:
    cases = {
        "Choose one with --as": ["approvals", "--as", "bob"],
        "are not sent to http://127.0.0.1:9": ["approvals", "--url", "http://127.0.0.1:9"],
        "http:// or https://": ["approvals", "--url", "placet"],
        "Missing argument": ["card"],
    }
    for text, ran in zip(cases, await terminal.run_all(*cases.values()), strict=True):
        assert (ran.code, ran.out, text in ran.err) == (2, "", True), ran.err
    terminal.more["PLACET_PROFILE"] = str(tmp_path / "none.json")
    ran = await terminal.run("approvals")
    assert (ran.code, "make up" in ran.err) == (2, True)


@pytest.mark.req("U4")
async def test_the_profile_is_for_its_owner_only(terminal: Terminal, world: World) -> None:
    path = terminal.folder / ".placet" / "profile.json"
    path.chmod(0o644)
    write_profile(world.system, path, world.tenant)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["profile.json"]
    assert json.loads(path.read_text())["url"] == world.system.url


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
