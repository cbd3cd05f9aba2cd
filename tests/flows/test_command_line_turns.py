"""The `placet` command for who asks: submit, watch, show, retry, at the real API."""

import json
import signal

import pytest

from terminal import Terminal, answering, between, end, until
from world import World, create, read, script


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
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
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
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    watching = await terminal.begin("watch", turn["conversation_id"])
    said = await until(watching, "waits")
    watching.send_signal(signal.SIGINT)
    left = await end(watching, said=said)
    assert (left.code, left.err) == (130, "Left. What was asked for goes on without you.\n")
    await world.approve(card)
    await world.state(turn, "completed")


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
