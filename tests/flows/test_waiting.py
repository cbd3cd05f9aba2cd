"""What waits costs nothing but rows: with thousands of open questions no transaction, no delivery and no memory is held."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import asyncpg
import pytest

from placet.contracts.catalogue import SERVICES
from placet.local.backing import Backing
from placet.local.system import System
from placet.local.system import system as run_system
from placet.testing import wait_until
from world import World, create, read, script

WAITING = 10_000
AT_ONCE = 48
WARMING = 200


@pytest.fixture
async def world(backing: Backing) -> AsyncGenerator[World]:
    """The people, at a system of their own: nothing else has warmed it."""
    async with run_system(backing) as running, World(running) as made:
        yield made


@pytest.mark.timeout(900)
@pytest.mark.req("T1")
async def test_ten_thousand_open_questions_hold_nothing(world: World, figures: Callable[[str], None]) -> None:
    await _finish(world, WARMING)
    nothing_waits = _memory(world.system)
    await _suspend(world, 1000)
    await _nothing_is_held(world, 1000)
    await _suspend(world, WAITING - 1000)
    await _nothing_is_held(world, WAITING)
    after_the_load = _memory(world.system)
    await world.system.stop()
    await world.system.start()
    await _finish(world, WARMING)
    thousands_wait = _memory(world.system)
    figures(f"{'resident MiB':>12} {'0 waiting':>12} {f'{WAITING} waiting':>14} {'change':>8} {'without a restart':>18}")
    for name, before in nothing_waits.items():
        now, loaded = thousands_wait[name], after_the_load[name]
        figures(f"{name:>12} {before:12.1f} {now:14.1f} {now / before - 1:+8.1%} {loaded:18.1f}")
    for name, before in nothing_waits.items():
        assert thousands_wait[name] < before * 1.05, name


async def _suspend(world: World, count: int) -> None:
    """So many more turns, each of which waits for a person."""
    before = await _open_cards(world)
    await _submit(world, script([create("hello")], "done"), count)
    await _until_cards(world, before + count)


async def _finish(world: World, count: int) -> None:
    """So many turns that come to their end: code, pools and caches are as warm as they get."""
    before = await _completed(world)
    await _submit(world, script([read()], "done"), count)

    async def ended() -> bool:
        return await _completed(world) == before + count

    await wait_until(ended, f"{count} turns are completed", within=120)


async def _submit(world: World, text: str, count: int) -> None:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with slots:
            await world.alice.submit(text)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())


async def _until_cards(world: World, count: int) -> None:
    async def shown() -> bool:
        return await _open_cards(world) == count

    await wait_until(shown, f"{count} cards are open", within=600)


async def _nothing_is_held(world: World, count: int) -> None:
    admin = await asyncpg.connect(world.system.backing.postgres_url)
    try:

        async def no_transaction() -> bool:
            query = "select count(*) from pg_stat_activity where usename like $1 and xact_start is not null"
            return await admin.fetchval(query, f"{world.system.run.name}%") == 0

        await wait_until(no_transaction, f"no transaction is open while {count} approvals wait", within=180)
    finally:
        await admin.close()

    async def no_delivery() -> bool:
        broker = world.system.backing.broker
        return await asyncio.to_thread(broker.unacknowledged, world.system.run.vhost) == {}

    await wait_until(no_delivery, f"no delivery is unacknowledged while {count} approvals wait", within=180)


def _memory(system: System) -> dict[str, float]:
    """Resident MiB of each service."""
    return {name: system.services[name].rss() / 2**20 for name in SERVICES}


async def _open_cards(world: World) -> int:
    return await _count(world, "select count(*) from card where state = 'pending' and body is not null")


async def _completed(world: World) -> int:
    return await _count(world, "select count(*) from turn_view where state = 'completed'")


async def _count(world: World, query: str) -> int:
    connection = await asyncpg.connect(world.system.database_url("ingress"))
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()
