"""Every message delivered twice, and two executors for one command: still one effect."""

import asyncio
import json
from collections.abc import AsyncGenerator, Set
from contextlib import aclosing, asynccontextmanager

import aio_pika
import asyncpg
import pytest
from aio_pika.abc import AbstractIncomingMessage

from placet.contracts.catalogue import OUTSIDE, ROUTES, SERVICES, exchange, heard_by, inbox_queue, request_queue
from placet.contracts.message import Message, wrap
from placet.contracts.permissions import DecisionSubmitted, PermissionDecided
from placet.contracts.turns import TurnAccepted, TurnRequested, TurnResumed, TurnRetried, TurnStalled
from placet.local.issuer import APPROVER, ASKER
from placet.local.system import System
from placet.testing import wait_until
from world import Json, World, create, read, results, script


class Echo:
    """Hears what every party says, and says it again, by the same user on the same exchange."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.heard: dict[str, AbstractIncomingMessage] = {}

    async def start(self) -> None:
        """Listen to every exchange."""
        parties = (*SERVICES, *OUTSIDE)
        self._ear = await aio_pika.connect(self._system.admin_amqp_url)
        self._mouths = {name: await aio_pika.connect(self._system.amqp_url(name)) for name in parties}
        self._channels = {name: await mouth.channel() for name, mouth in self._mouths.items()}
        channel = await self._ear.channel()
        queue = await channel.declare_queue(exclusive=True)
        for name in parties:
            await queue.bind(exchange(name), "#")
        await queue.consume(self._hear, no_ack=True)

    async def stop(self) -> None:
        """Close every connection."""
        for connection in (self._ear, *self._mouths.values()):
            await connection.close()

    async def _hear(self, message: AbstractIncomingMessage) -> None:
        name = message.message_id or ""
        if name not in self.heard:
            self.heard[name] = message
            await self.repeat(message)

    async def repeat(self, message: AbstractIncomingMessage) -> None:
        """Publish a message once more as it was, but without an end: a question that comes late must be heard too."""
        copy = aio_pika.Message(
            message.body,
            message_id=message.message_id,
            type=message.type,
            content_type=message.content_type,
            correlation_id=message.correlation_id,
            reply_to=message.reply_to,
            headers=message.headers,
            user_id=message.user_id,
            delivery_mode=2,
        )
        await self._say((message.exchange or "").removeprefix("placet."), copy, message.routing_key or "")

    async def say_first(self, party: str, said: Message, tenant: str) -> None:
        """Say something as a program that is not ours."""
        envelope = wrap(said, source=party, tenant=tenant, conversation="", cause="", traceparent="")
        user = self._system.run.user_prefix + party
        await self._say(
            party, aio_pika.Message(envelope.encode(), message_id=envelope.id, user_id=user, type=said.wire), said.wire
        )

    async def _say(self, party: str, message: aio_pika.Message, key: str) -> None:
        target = await self._channels[party].get_exchange(exchange(party), ensure=False)
        await target.publish(message, key)


@asynccontextmanager
async def echo(system: System) -> AsyncGenerator[Echo]:
    """Every message twice, for the block."""
    made = Echo(system)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


STALLS = {TurnStalled.wire, TurnResumed.wire, TurnRetried.wire}


@pytest.mark.req("M2", "A9", "T5", "P2", "P4", "U2")
async def test_every_message_twice_and_once_more_at_the_end_changes_nothing(world: World) -> None:
    async with echo(world.system) as everything:
        turn = await _asked_by_a_frontend(world, everything, script([read(), create("hello"), create("denied")], "done"))
        first = await world.card(turn)
        await world.approve(first)
        await _denied_by_an_app(world, everything, await world.next_card(turn, first))
        await _told(world, turn, PermissionDecided.wire, times=2)
        view = await world.state(turn, "completed")
        await _once_more_changes_nothing(world, everything, view, ROUTES.keys() - STALLS)
    assert [message["outcome"] for message in results(view)] == ["succeeded", "succeeded", "denied"]
    assert len(view["cards"]) == 2
    assert len(await world.effects()) == 1


@pytest.mark.req("M2", "M4")
async def test_that_a_turn_stands_still_and_goes_on_may_be_said_twice_and_once_more_at_the_end(world: World) -> None:
    async with echo(world.system) as everything:
        async with world.planner_fault("message", "new.role = 'tool'"):
            turn = await world.alice.submit(script([read()], "done"))
            await world.state(turn, "resume_failed")
        await world.alice.retry(turn["conversation_id"], turn["turn_id"])
        await _told(world, turn, TurnResumed.wire)
        view = await world.state(turn, "completed")
        await _once_more_changes_nothing(world, everything, view, STALLS)
    assert [message["outcome"] for message in results(view)] == ["succeeded"]


async def _once_more_changes_nothing(world: World, everything: Echo, view: Json, kinds: Set[str]) -> None:
    """Each message that was said, and so was said twice, is said again: among them were messages of all these kinds."""
    before = await _ledger(world)
    messages = list(everything.heard.values())
    assert kinds - {message.type for message in messages} == set()
    for message in messages:
        await everything.repeat(message)
    await _queues_are_empty(world.system)
    assert await world.alice.conversation(view["conversation_id"]) == view
    assert await _ledger(world) == before


async def _told(world: World, turn: Json, kind: str, times: int = 1) -> None:
    """Ingress has shown so many of these: they may come behind the end of the turn."""
    async with aclosing(world.alice.events(turn["conversation_id"])) as events:
        async for event in events:
            times -= event.type == kind
            if not times:
                return


async def _asked_by_a_frontend(world: World, everything: Echo, text: str) -> Json:
    """A turn that alice asks for by message, as ingress accepted it."""
    token = world.system.token("alice", world.tenant, *ASKER)
    asked = TurnRequested(request_id="the-same-key", text=text, authorization=token)
    await everything.say_first("frontend", asked, world.tenant)

    async def accepted() -> Json | None:
        found = [message for message in everything.heard.values() if message.type == TurnAccepted.wire]
        return json.loads(found[0].body)["data"] if found else None

    return await wait_until(accepted, "ingress has accepted the turn")


async def _denied_by_an_app(world: World, everything: Echo, card: Json) -> None:
    """Ann denies by message."""
    token = world.system.token("ann", world.tenant, *APPROVER)
    answer = {"decision": "deny", "digest": card["digest"]}
    said = DecisionSubmitted(interrupt_id=card["interrupt_id"], answer=answer, authorization=token)
    await everything.say_first("approver", said, world.tenant)


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


async def _ledger(world: World) -> list[tuple[str, ...]]:
    """What must not grow when a message comes again: rows of every table that records something, by tenant."""
    tables = {
        "planner": ("turn", "message", "tool_call", "parked"),
        "permission": ("approval", "parked"),
        "admission": ("proposal", "command", "attempt", "parked"),
        "ingress": ("accepted_turn", "turn_view", "stall", "message_view", "card", "event", "parked"),
    }
    found: list[tuple[str, ...]] = []
    for service, names in tables.items():
        connection = await asyncpg.connect(world.system.database_url(service))
        try:
            for name in names:
                rows = await connection.fetch(
                    f"select t::text from {name} t where coalesce(tenant, $1) = $1 order by 1", world.tenant
                )
                found.append((service, name, *(row[0] for row in rows)))
        finally:
            await connection.close()
    return found


async def _queues_are_empty(system: System) -> None:
    queues = [*map(inbox_queue, SERVICES), *(request_queue(name) for name in SERVICES if heard_by(name, "request"))]
    async with await aio_pika.connect(system.admin_amqp_url) as connection:
        channel = await connection.channel()

        async def empty() -> bool:
            waiting = [await channel.declare_queue(name, passive=True) for name in queues]
            return all(queue.declaration_result.message_count == 0 for queue in waiting)

        await wait_until(empty, "every queue is empty")
    for name in SERVICES:  # what was taken from a queue may still be in work: an orderly stop finishes it
        await system.stop(name)
    await system.mend()
