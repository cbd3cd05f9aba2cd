"""A service whose queue is lost, as a real process: it hears again, or ends with status 1 for its supervisor (B41)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import aio_pika
import pytest

from placet.contracts.catalogue import SERVICES, inbox_queue
from placet.contracts.topology import definitions
from placet.local.backing import Backing
from placet.local.private import PrivateRabbitMQ
from placet.local.system import System
from placet.local.system import system as run_system
from placet.testing import wait_until
from world import World, create, script

LONG = 60.0
"""B41 grants ten seconds; a busy machine gets more."""


@pytest.fixture(scope="module")
async def frail_system(backing: Backing, broker: PrivateRabbitMQ) -> AsyncGenerator[System]:
    """Five services on the private broker."""
    async with run_system(replace(backing, amqp_url=broker.url, broker=broker.admin)) as running:
        yield running


@asynccontextmanager
async def inboxes_away(system: System) -> AsyncGenerator[None]:
    """For the block, somebody has deleted the queue of every service's events."""
    async with await aio_pika.connect(system.admin_amqp_url) as connection:
        channel = await connection.channel()
        for service in SERVICES:
            await channel.queue_delete(inbox_queue(service))
    try:
        yield
    finally:
        run = system.run
        made = definitions(vhost=run.vhost, user_prefix=run.user_prefix, password_of=run.password)
        await asyncio.to_thread(system.backing.broker.import_definitions, made)


async def a_gated_call_works(system: System) -> None:
    """One call goes through all five, so each of them hears."""
    async with World(system) as world:
        turn = await world.alice.submit(script([create("heard again")], "done"))
        await world.approve(await world.card(turn))
        await world.state(turn, "completed", within=LONG)
        assert [effect["kind"] for effect in await world.effects()] == ["note.create"]


async def ended_for_its_supervisor(system: System, service: str) -> None:
    process = system.services[service]
    assert await process.ended(LONG) == 1, process.tail()
    assert inbox_queue(service) in (await process.said("service.alarm"))["reason"]


async def heard_again_or_ended(system: System, service: str) -> None:
    process = system.services[service]

    async def look() -> bool:
        if any(line.get("action") == "service.alarm" for line in process.lines()):
            return process.returncode is not None
        return await consumers(system, inbox_queue(service)) > 0

    await wait_until(look, f"{service} consumes, or has ended", within=LONG)
    if process.returncode is not None:
        await ended_for_its_supervisor(system, service)


async def consumers(system: System, queue: str) -> int:
    async with await aio_pika.connect(system.admin_amqp_url) as connection:
        found = await (await connection.channel()).declare_queue(queue, passive=True)
    return found.declaration_result.consumer_count or 0


@pytest.mark.req("M5")
async def test_b41_each_service_whose_queue_is_gone_for_good_says_so_and_ends_with_status_1(frail_system: System) -> None:
    async with inboxes_away(frail_system):
        for service in SERVICES:
            await ended_for_its_supervisor(frail_system, service)
    await frail_system.mend()
    await a_gated_call_works(frail_system)


@pytest.mark.req("M5")
async def test_b41_each_service_whose_queue_is_deleted_and_made_again_hears_again_or_ends_with_status_1(
    frail_system: System,
) -> None:
    async with inboxes_away(frail_system):
        pass
    for service in SERVICES:
        await heard_again_or_ended(frail_system, service)
    await frail_system.mend()
    await a_gated_call_works(frail_system)
