"""What waits for a person (cases from the field by their numbers): a pause is no error, and outlives every process."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import redis
from aio_pika.abc import AbstractQueue

from placet.testing import wait_until
from queues import counted
from wires import Wire
from world import Json, World, create, read, results, script


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
    spy = await world.spy("admission", "permission")
    async with world.planner_fault("tool_call", NOTED):
        turn = await world.alice.submit(script([create("hello")], "done"))

        async def parked() -> bool:
            query = "select count(*) from parked where position($1 in convert_from(body, 'UTF8')) > 0"
            return await world.scalar("planner", query, turn["turn_id"]) == 1

        await wait_until(parked, "the planner has given up to note the pause")
        await _waits(world, turn)
    await _ends_well(world, turn, spy)


@pytest.mark.req("T1", "T5", "P2")
@pytest.mark.parametrize("end", ["sigterm", "sigkill"])
async def test_b07_a_pause_is_no_error_and_invents_no_result(world: World, end: str) -> None:
    spy = await world.spy("admission", "permission")
    turn = await world.alice.submit(script([create("hello")], "done"))
    await world.card(turn)
    if end == "sigterm":
        assert await world.system.services["planner"].terminate() == 0
    else:
        world.system.kill("planner")
    await world.system.start("planner")
    await _waits(world, turn)
    await _ends_well(world, turn, spy)


@pytest.mark.req("T1", "T5", "P2")
async def test_b07_a_pause_that_is_noted_at_another_attempt_is_one_pause(world: World) -> None:
    """A layer that tries again: the database ends the planner's connection while the planner notes the pause."""
    spy = await world.spy("admission", "permission")
    async with world.planner_held("tool_call", NOTED):
        turn = await world.alice.submit(script([create("hello")], "done"))
        session = await _held(world)
        await _ends_connection(world, session)
        assert await _held(world, but=session) != session
        await _waits(world, turn)
    await _noted(world, turn)
    await _ends_well(world, turn, spy)


@pytest.mark.req("T1", "T5", "P2", "M5")
async def test_b07_a_pause_whose_handler_is_cancelled_is_still_a_pause(world: World) -> None:
    """When its line to the broker is cut, every handler of the planner is cancelled, and its messages come again."""
    spy = await world.spy("admission", "permission")
    async with _planner_on_a_wire(world) as wire, world.planner_held("tool_call", NOTED):
        turn = await world.alice.submit(script([create("hello")], "done"))
        await _held(world)
        before = wire.connections
        wire.cut()

        async def again() -> bool:
            return wire.connections >= 2 * before

        await wait_until(again, "the planner has its connections again")
        await _waits(world, turn)
    await _noted(world, turn)
    await _ends_well(world, turn, spy)


NOTED = "new.state = 'awaiting_approval'"
"""The row by which the planner notes that a call waits for a person."""


async def _held(world: World, but: int = 0) -> int:
    """The planner's session at the database that has come to a standstill, once there is one, or one more."""
    query = (
        "select pid from pg_locks where locktype = 'advisory' and not granted and pid <> $1 "
        "and database = (select oid from pg_database where datname = current_database())"
    )
    return await wait_until(lambda: world.scalar("planner", query, but), "the planner is about to note the pause")


async def _ends_connection(world: World, session: int) -> None:
    admin = await asyncpg.connect(world.system.backing.postgres_url)
    try:
        await admin.execute("select pg_terminate_backend($1)", session)
    finally:
        await admin.close()


@asynccontextmanager
async def _planner_on_a_wire(world: World) -> AsyncGenerator[Wire]:
    """For the block, the planner reaches the broker over a line that can be cut."""
    wire = Wire(world.system.backing.amqp_url)
    await wire.start()
    await world.system.stop("planner")
    await world.system.start("planner", PLACET_AMQP_URL=wire.through(world.system.amqp_url("planner")))
    try:
        yield wire
    finally:
        await world.system.stop("planner")
        await wire.stop()
        await world.system.start("planner")


async def _waits(world: World, turn: Json) -> None:
    """The turn shows one open card, and no result of any kind."""
    view = await world.state(turn, "awaiting_approval")
    assert (results(view), [each["state"] for each in view["cards"]]) == ([], ["pending"])


async def _noted(world: World, turn: Json) -> None:
    async def noted() -> bool:
        query = "select state from tool_call where turn_id = $1"
        return await world.scalar("planner", query, turn["turn_id"]) == "awaiting_approval"

    await wait_until(noted, "the planner has noted the pause")


async def _ends_well(world: World, turn: Json, spy: AbstractQueue) -> None:
    """Approved, it happens once; permission was asked once for the call, and asked people once."""
    await world.approve(await world.card(turn))
    view = await world.state(turn, "completed")
    assert [result["outcome"] for result in results(view)] == ["succeeded"]
    assert len(await world.effects()) == 1
    said = await counted(spy, turn)
    assert (said["permission.asked.v1"], said["permission.requested.v1"]) == (1, 1)


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


def _by_call(view: Json) -> dict[str, str]:
    return {message["tool_call_id"]: message["text"] for message in results(view)}


def _asked(world: World) -> list[str]:
    log = (world.system.folder / "planner.log").read_text()
    return [line for line in log.splitlines() if '"action": "model.asked"' in line]


def _keys_in_redis(world: World) -> list[Any]:
    with redis.Redis.from_url(world.system.backing.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        return list(client.scan_iter(f"{world.system.run.name}*"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
