"""Every message delivered twice, and two executors for one command: still one effect."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aio_pika
import asyncpg
import pytest
from aio_pika.abc import AbstractIncomingMessage

from placet.contracts.catalogue import OUTSIDE, SERVICES, exchange
from placet.local.system import System
from placet.testing import wait_until
from world import Json, World, create, read, results, script


class Echo:
    """Hears what every service says, and says it again, by the same user on the same exchange."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.heard: dict[str, AbstractIncomingMessage] = {}
        self.said = 0

    async def start(self) -> None:
        """Listen to every exchange."""
        self._ear = await aio_pika.connect(self._system.admin_amqp_url)
        self._mouths = {name: await aio_pika.connect(self._system.amqp_url(name)) for name in (*SERVICES, *OUTSIDE)}
        self._channels = {name: await mouth.channel() for name, mouth in self._mouths.items()}
        channel = await self._ear.channel()
        queue = await channel.declare_queue(exclusive=True)
        for name in SERVICES:
            await queue.bind(exchange(name), "#")
        await queue.consume(self._hear, no_ack=True)

    async def stop(self) -> None:
        """Close every connection."""
        for connection in (self._ear, *self._mouths.values()):
            await connection.close()

    async def _hear(self, message: AbstractIncomingMessage) -> None:
        name = message.message_id or ""
        if message.correlation_id is None and name not in self.heard:
            self.heard[name] = message
            await self.say(message)

    async def say(self, message: AbstractIncomingMessage) -> None:
        """Publish a message once more, exactly as it was."""
        publisher = (message.exchange or "").removeprefix("placet.")
        copy = aio_pika.Message(
            message.body,
            message_id=message.message_id,
            type=message.type,
            content_type=message.content_type,
            headers=message.headers,
            user_id=message.user_id,
            delivery_mode=2,
        )
        target = await self._channels[publisher].get_exchange(message.exchange or "", ensure=False)
        await target.publish(copy, message.routing_key or "")
        self.said += 1


@asynccontextmanager
async def echo(system: System) -> AsyncGenerator[Echo]:
    """Every message twice, for the block."""
    made = Echo(system)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest.mark.req("M2", "A9", "T5", "P2", "P4")
async def test_every_message_twice_and_once_more_at_the_end_changes_nothing(world: World) -> None:
    async with echo(world.system) as everything:
        turn = await world.alice.submit(script([read(), create("hello"), create("denied")], "done"))
        first = await world.card(turn)
        await world.approve(first)
        second = await _another_card(world, turn, first)
        await world.deny(second)
        view = await world.state(turn, "completed")
        before = await _ledger(world)
        messages = list(everything.heard.values())
        assert {message.type for message in messages} >= _EVENTS
        for message in messages:
            await everything.say(message)
        await _queues_are_empty(world.system)
        assert await world.alice.conversation(turn["conversation_id"]) == view
    assert await _ledger(world) == before
    assert [message["outcome"] for message in results(view)] == ["succeeded", "succeeded", "denied"]
    assert len(view["cards"]) == 2
    assert len(await world.effects()) == 1


_EVENTS = {
    "turn.accepted.v1",
    "tool_call.proposed.v1",
    "permission.asked.v1",
    "permission.requested.v1",
    "permission.decided.v1",
    "command.ready.v1",
    "command.reported.v1",
    "tool_call.settled.v1",
    "turn.changed.v1",
}


@pytest.mark.req("A6", "E2", "M6")
async def test_two_executors_and_one_command_make_one_effect(world: World) -> None:
    await world.system.start_copy("executor", "executor-2")
    try:
        async with echo(world.system):
            turns = [await world.alice.submit(script([create("hello", f"C-{number}")], "done")) for number in range(12)]
            cards = [await world.card(turn) for turn in turns]
            await asyncio.gather(*(world.approve(card) for card in cards))
            for turn in turns:
                await world.state(turn, "completed")
    finally:
        await world.system.stop("executor-2")
    keys = [effect["operation_key"] for effect in await world.effects()]
    assert sorted(keys) == sorted(card["operation_id"] for card in cards)
    sent = [asked["operation_key"] for asked in await world.requests("POST")]
    assert sorted(sent) == sorted(keys)


async def _another_card(world: World, turn: Json, known: Json) -> Json:
    async def look() -> Json | None:
        cards = await world.cards(turn)
        return next((card for card in cards if card["interrupt_id"] != known["interrupt_id"]), None)

    return await wait_until(look, "the second card is out")


async def _ledger(world: World) -> list[tuple[str, ...]]:
    """What must not grow when a message comes again: rows of every table that records something, by tenant."""
    tables = {
        "planner": ("turn", "message", "tool_call"),
        "permission": ("approval",),
        "admission": ("proposal", "command", "attempt"),
        "ingress": ("accepted_turn", "turn_view", "message_view", "card", "event"),
    }
    found: list[tuple[str, ...]] = []
    for service, names in tables.items():
        connection = await asyncpg.connect(world.system.database_url(service))
        try:
            for name in names:
                rows = await connection.fetch(f"select t::text from {name} t where tenant = $1 order by 1", world.tenant)
                found.append((service, name, *(row[0] for row in rows)))
        finally:
            await connection.close()
    return found


async def _queues_are_empty(system: System) -> None:
    async with await aio_pika.connect(system.admin_amqp_url) as connection:
        channel = await connection.channel()

        async def empty() -> bool:
            waiting = [await channel.declare_queue(f"placet.{name}.in", passive=True) for name in SERVICES]
            return all(queue.declaration_result.message_count == 0 for queue in waiting)

        await wait_until(empty, "every queue is empty")
    for name in SERVICES:  # what was taken from a queue may still be in work: an orderly stop finishes it
        await system.stop(name)
    await system.mend()
