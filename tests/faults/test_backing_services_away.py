"""RabbitMQ, PostgreSQL and Redis are killed and come back: services wait, reconnect, and lose nothing (M5)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

import httpx2
import pytest

from placet.client import Refused
from placet.local.backing import Backing
from placet.local.private import PrivatePostgres, PrivateRabbitMQ, PrivateRedis
from placet.local.system import System
from placet.local.system import system as run_system
from placet.testing import wait_until
from world import Json, World, create, results, script

TURNS = 12


@pytest.fixture(scope="module")
def rabbitmq() -> Generator[PrivateRabbitMQ]:
    """A broker that this module may kill."""
    with PrivateRabbitMQ.owned() as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Generator[PrivatePostgres]:
    """A database server that this module may kill; what it has committed outlives that."""
    with PrivatePostgres.owned() as server:
        yield server


@pytest.fixture(scope="module")
def redis() -> Generator[PrivateRedis]:
    """A Redis that this module may kill."""
    with PrivateRedis.owned() as server:
        yield server


@pytest.fixture(scope="module")
async def own(rabbitmq: PrivateRabbitMQ, postgres: PrivatePostgres, redis: PrivateRedis) -> AsyncGenerator[System]:
    """A system on backing services of its own, whose queues are on the disk already."""
    settings = {"*": {"PLACET_RELAY_GRACE_SECONDS": "0.5"}, "ingress": {"PLACET_ANSWER_SECONDS": "3"}}
    backing = Backing(rabbitmq.url, postgres.url, redis.url, rabbitmq.admin)
    async with run_system(backing, settings) as running:
        yield running


@pytest.fixture
async def world(own: System) -> AsyncGenerator[World]:
    """The people, at the system on private backing services."""
    async with World(own) as made:
        yield made
    await own.mend()


@pytest.mark.req("M5", "P4")
async def test_b17_an_answer_given_while_the_broker_is_away_is_not_used_up(world: World, rabbitmq: PrivateRabbitMQ) -> None:
    await _queues_are_on_disk(world, rabbitmq)
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    await asyncio.to_thread(rabbitmq.kill)
    with pytest.raises(Refused) as refused:
        await world.approve(card)
    assert (refused.value.status, refused.value.code) == (503, "not_delivered")
    later = await world.alice.submit(script([create("accepted while the broker is away", "C-7")], "done"))
    await asyncio.to_thread(rabbitmq.start)
    assert (await _approved(world, card))["state"] == "approved"
    await world.state(turn, "completed", within=60)
    await _approved(world, await world.card(later))
    await world.state(later, "completed", within=60)
    assert len(await world.effects()) == 2


@pytest.mark.req("M5", "T1")
async def test_a_service_stops_in_order_while_the_broker_is_away_and_loses_nothing(
    world: World, rabbitmq: PrivateRabbitMQ
) -> None:
    await _queues_are_on_disk(world, rabbitmq)
    await asyncio.to_thread(rabbitmq.kill)
    turns = [await world.alice.submit(script("hello")) for _ in range(200)]
    assert await world.system.services["ingress"].terminate() == 0
    await asyncio.to_thread(rabbitmq.start)
    await world.system.mend()
    for turn in turns:
        await world.state(turn, "completed", within=90)


@pytest.mark.req("M5", "F")
@pytest.mark.parametrize("victim", ["rabbitmq", "postgres", "redis"])
async def test_a_restart_under_load_loses_nothing(
    world: World, victim: str, rabbitmq: PrivateRabbitMQ, postgres: PrivatePostgres, redis: PrivateRedis
) -> None:
    await _queues_are_on_disk(world, rabbitmq)
    server = {"rabbitmq": rabbitmq, "postgres": postgres, "redis": redis}[victim]
    load = [asyncio.create_task(_whole(world, number)) for number in range(TURNS)]
    await wait_until(lambda: _some_effect(world), "the load is under way")
    await asyncio.to_thread(server.restart)
    views = await asyncio.gather(*load)
    assert [[message["outcome"] for message in results(view)] for view in views] == [["succeeded"]] * TURNS
    operations = sorted(view["cards"][0]["card"]["operation_id"] for view in views)
    assert sorted(effect["operation_key"] for effect in await world.effects()) == operations


async def _whole(world: World, number: int) -> Json:
    """One conversation from end to end, by people who send again what failed."""
    turn = await _again(lambda: world.alice.submit(script([create("hello", f"C-{number}")], "done"), key=f"turn {number}"))
    card = (await world.cards(turn, within=90))[0]
    await _approved(world, card)
    return await world.state(turn, "completed", within=90)


async def _approved(world: World, card: Json) -> Json:
    async def attempt() -> Json | None:
        answer = await world.approve(card)
        return answer if answer.get("state") == "approved" else None

    return await _again(attempt)


async def _again(attempt: Callable[[], Awaitable[Json | None]]) -> Json:
    async def look() -> Json | None:
        try:
            return await attempt()
        except httpx2.TransportError:
            return None
        except Refused as refused:
            if refused.status != 503:
                raise
            return None

    return await wait_until(look, "a request that is sent again succeeds", within=90)


async def _some_effect(world: World) -> bool:
    return len(await world.effects()) > 0


async def _queues_are_on_disk(world: World, rabbitmq: PrivateRabbitMQ) -> None:
    """A quorum queue that is younger than a second would not survive the kill; a real one is older."""

    async def all_of_them() -> bool:
        vhost = world.system.run.vhost
        return all(rabbitmq.holds_on_disk(vhost, f"placet.{name}.in") for name in ("planner", "admission", "executor"))

    await wait_until(all_of_them, "the queues are on the disk")
