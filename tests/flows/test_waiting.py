"""What waits costs nothing but rows: with thousands of open questions no transaction, no delivery and no memory is held.

Memory is looked at twice: in processes that have let the questions wait, where the room that any load leaves behind is set
aside by beginning at some thousands; and in processes that were started while they wait.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from urllib.parse import urlsplit

import asyncpg
import psutil
import pytest

from placet.contracts.catalogue import SERVICES
from placet.local.backing import Backing
from placet.local.held import no_delivery, no_transaction
from placet.local.system import System
from placet.local.system import system as run_system
from placet.testing import wait_until
from world import World, create, read, script

SOME, WAITING = 2000, 10_000
AT_ONCE = 48
WARMING = 200
HELD = 2048
"""Bytes for each question that waits: a delivery, a message or a task that is held for it takes more."""

OPEN_CARDS = "select count(*) from card where state = 'pending' and body is not null"
COMPLETED = "select count(*) from turn_view where state = 'completed'"

POOL = 4
"""Connections to its database that a service has at most, as it is shipped."""


@pytest.fixture
async def world(backing: Backing) -> AsyncGenerator[World]:
    """The people, at a system of their own: nothing else has warmed it."""
    async with run_system(backing) as running, World(running) as made:
        yield made


@pytest.mark.timeout(900)
@pytest.mark.req("T1")
async def test_ten_thousand_open_questions_hold_nothing(world: World, figures: Callable[[str], None]) -> None:
    await _finish(world, WARMING)
    none, connections = _memory(world.system), _broker_connections(world.system)
    await _suspend(world, SOME)
    await _nothing_is_held(world, SOME)
    some = _memory(world.system)
    await _suspend(world, WAITING - SOME)
    await _nothing_is_held(world, WAITING)
    every = _memory(world.system)

    async def as_before() -> bool:
        return _broker_connections(world.system) == connections

    await wait_until(as_before, f"with {WAITING} approvals waiting the broker has the connections that it had with none")
    await world.system.stop()
    await world.system.start()
    await _finish(world, WARMING)
    afresh = _memory(world.system)
    kept = {name: (every[name] - some[name]) * 2**20 / (WAITING - SOME) for name in SERVICES}
    figures(f"{'resident MiB':>12}" + "".join(f"{head:>16}" for head in _HEADS))
    for name, before in none.items():
        sizes = f"{before:16.1f}{some[name]:16.1f}{every[name]:16.1f}{kept[name]:16.0f}"
        figures(f"{name:>12}{sizes}{afresh[name]:16.1f}{afresh[name] / before - 1:+16.1%}")
    for name, before in none.items():
        assert afresh[name] < before * 1.05, name
        assert kept[name] < HELD, f"{name} holds something of every question that waits"


_HEADS = ("0 waiting", f"{SOME} waiting", f"{WAITING} waiting", "bytes for each", "after a restart", "change")


async def _suspend(world: World, count: int) -> None:
    """So many more turns, each of which waits for a person."""
    await _submit_until(world, script([create("hello")], "done"), count, OPEN_CARDS, "cards are open", within=600)


async def _finish(world: World, count: int) -> None:
    """So many turns that come to their end: code, pools and caches are as warm as they get."""
    await _submit_until(world, script([read()], "done"), count, COMPLETED, "turns are completed", within=120)


async def _submit_until(world: World, text: str, count: int, query: str, what: str, *, within: float) -> None:
    """So many more turns, and so many more of what a query counts."""
    books = await asyncpg.connect(world.system.database_url("ingress"))
    try:
        expected = await books.fetchval(query) + count

        async def counted() -> bool:
            return await books.fetchval(query) == expected

        await _submit(world, text, count)
        await wait_until(counted, f"{expected} {what}", within=within)
    finally:
        await books.close()


async def _submit(world: World, text: str, count: int) -> None:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with slots:
            await world.alice.submit(text)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())


async def _nothing_is_held(world: World, count: int) -> None:
    """No transaction, no delivery, no session at a database but those of the pools, no process beside the five."""
    admin = await asyncpg.connect(world.system.backing.postgres_url)
    name = world.system.run.name
    try:

        async def pools_alone() -> bool:
            query = "select count(*) from pg_stat_activity where usename like $1 group by usename"
            return all(row[0] <= POOL for row in await admin.fetch(query, f"{name}%"))

        await wait_until(pools_alone, f"no role has more than {POOL} sessions while {count} approvals wait")
    finally:
        await admin.close()

    for holds, what in ((no_transaction, "transaction is open"), (no_delivery, "delivery is unacknowledged")):
        await wait_until(partial(holds, world.system), f"no {what} while {count} approvals wait", within=180)
    assert [service for service in SERVICES if _process(world.system, service).children()] == []


def _process(system: System, name: str) -> psutil.Process:
    return psutil.Process(system.services[name].pid)


def _broker_connections(system: System) -> dict[str, int]:
    """How many connections each service has to the broker."""
    port = urlsplit(system.backing.amqp_url).port or 5672
    found: dict[str, int] = {}
    for name in SERVICES:
        sockets = _process(system, name).net_connections("tcp")
        found[name] = sum(each.status == psutil.CONN_ESTABLISHED and each.raddr[1:2] == (port,) for each in sockets)
    return found


def _memory(system: System) -> dict[str, float]:
    """Resident MiB of each service."""
    return {name: system.services[name].rss() / 2**20 for name in SERVICES}
