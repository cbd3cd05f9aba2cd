"""The consumer loses its connection, its channel or its queue: it is back, or says so, and what it did stays done once."""

import asyncio
import json
from functools import partial

import pytest
from aio_pika.abc import AbstractIncomingMessage

from placet.contracts.catalogue import dead_queue, inbox_queue, request_queue
from placet.contracts.commands import ClaimRequested
from placet.contracts.examples import EXAMPLES
from placet.contracts.message import Message
from placet.contracts.turns import TurnAccepted
from placet.messaging import Cause, promise
from placet.messaging.parking import Parking, Stall
from placet.testing import wait_until
from stations import Heard, Station

ACCEPTED = next(example for example in EXAMPLES if isinstance(example, TurnAccepted))
LONG = 60.0
"""B41 grants ten seconds; a busy machine gets more."""


async def accept(station: Station, *names: str) -> None:
    """Ingress says so many turns, named by their tenants."""
    channel = await station.channel("ingress")
    for name in names:
        said = promise("ingress", ACCEPTED, tenant=name, conversation="c")
        await station.say(channel, "ingress", "ingress", said.wire, said.body, message_id=said.message_id)


async def effect(station: Station, cause: Cause) -> None:
    """What a handler does, once by its natural key."""
    await station.execute("planner", f"insert into deed values ('{cause.tenant}') on conflict do nothing")


async def deeds(station: Station) -> list[str]:
    return sorted(row["name"] for row in await station.rows("planner", "deed"))


async def recreate(station: Station, name: str) -> None:
    """Delete a queue and load the definitions again, as an operator does."""
    await station.operator.queue_delete(name)
    await station.ground.import_topology()


async def consumed_or_alarmed(station: Station, queue: str) -> None:
    async def look() -> bool:
        return station.alarmed.done() or (await station.counts(queue))[1] > 0

    await wait_until(look, f"{queue} has a consumer, or the alarm is raised", within=LONG)


async def settled(station: Station, service: str = "planner") -> None:
    """The queue has a consumer again and no message is ready or dead."""

    async def look() -> bool:
        ready, consumers = await station.counts(inbox_queue(service))
        return consumers > 0 and ready == 0

    await wait_until(look, f"{service} consumes and its queue is empty", within=LONG)
    assert await station.counts(dead_queue(service)) == (0, 0)


@pytest.mark.req("M2", "M5")
async def test_b41_a_connection_lost_between_effect_and_ack_costs_a_second_delivery_and_no_second_effect(
    station: Station,
) -> None:
    wire, calls = await station.wire(), list[str]()
    await station.database("planner")

    async def handler(_message: Message, cause: Cause) -> None:
        calls.append(cause.tenant)
        await effect(station, cause)
        if calls == ["one"]:
            wire.cut()
            await asyncio.sleep(0)

    consumer = await station.consumer("planner", Heard(), {TurnAccepted: handler}, wire=wire, prefetch=1)
    await accept(station, "one", "two")

    async def look() -> bool:
        return await deeds(station) == ["one", "two"] and calls.count("one") > 1

    await wait_until(look, "both are done, the first twice", within=LONG)
    await settled(station)
    await consumer.stop()
    assert await deeds(station) == ["one", "two"]
    assert calls.count("one") == 2
    assert await station.rows("planner", "parked") == []
    assert await station.counts(inbox_queue("planner")) == (0, 0)
    assert not station.alarmed.done()


@pytest.mark.req("M2", "M5")
async def test_a_handler_under_way_when_the_connection_is_lost_is_called_again(station: Station) -> None:
    wire, calls = await station.wire(), list[str]()
    begun = asyncio.Event()

    async def handler(_message: Message, cause: Cause) -> None:
        calls.append(cause.tenant)
        if len(calls) == 1:
            begun.set()
            await asyncio.Event().wait()

    await station.consumer("planner", Heard(), {TurnAccepted: handler}, wire=wire)
    await accept(station, "one")
    await begun.wait()
    wire.cut()

    async def look() -> bool:
        return len(calls) == 2

    await wait_until(look, "the message is handled again", within=LONG)
    await settled(station)
    assert await station.rows("planner", "parked") == []
    assert not station.alarmed.done()


async def closed(delivery: AbstractIncomingMessage) -> bool:
    return delivery.channel.is_closed


class ChannelBreaker:
    """Parks, then acknowledges what was never delivered: the broker closes the channel of the consumer."""

    def __init__(self, parking: Parking) -> None:
        self._parking = parking
        self.calls = 0

    async def park(self, delivery: AbstractIncomingMessage, reason: str, stall: Stall | None = None) -> None:
        self.calls += 1
        await self._parking.park(delivery, reason, stall)
        if self.calls == 1:
            await delivery.channel.basic_ack(delivery_tag=1_000_000)
            await wait_until(partial(closed, delivery), "the broker has closed the channel")


@pytest.mark.req("M4", "M5")
async def test_b41_a_channel_error_costs_a_second_delivery_and_nothing_else(station: Station) -> None:
    heard = Heard()
    parking = ChannelBreaker(await station.parking("planner", await station.publisher("planner")))
    await station.consumer("planner", heard, parking=parking)
    channel = await station.channel("ingress")
    await station.say(channel, "ingress", "ingress", TurnAccepted.wire, b"{not json")
    await accept(station, "one", "two")

    async def look() -> bool:
        return parking.calls >= 2 and {cause.tenant for _, cause in heard.calls} == {"one", "two"}

    await wait_until(look, "the bad one is parked again and the good ones are handled", within=LONG)
    await settled(station)
    assert [row["body"] for row in await station.rows("planner", "parked")] == [b"{not json"]
    assert not station.alarmed.done()


@pytest.mark.req("M5")
async def test_b41_a_queue_that_is_deleted_and_made_again_is_consumed_again_or_the_alarm_is_raised(frail: Station) -> None:
    heard = Heard()
    await frail.consumer("planner", heard)
    await accept(frail, "before")
    await settled(frail)
    await recreate(frail, inbox_queue("planner"))
    await accept(frail, "after")
    await consumed_or_alarmed(frail, inbox_queue("planner"))
    if frail.alarmed.done():
        assert inbox_queue("planner") in frail.alarmed.result()
        assert (await frail.counts(inbox_queue("planner")))[0] == 1, "the message waits for the next process"
    else:
        await settled(frail)
        assert [cause.tenant for _, cause in heard.calls] == ["before", "after"]


@pytest.mark.req("M5")
async def test_b41_a_queue_that_is_deleted_for_good_raises_the_alarm(frail: Station) -> None:
    await frail.consumer("planner", Heard())
    await frail.operator.queue_delete(inbox_queue("planner"))
    try:
        assert inbox_queue("planner") in await asyncio.wait_for(asyncio.shield(frail.alarmed), LONG)
    finally:
        await frail.ground.import_topology()


@pytest.mark.req("M5")
async def test_b41_the_queue_of_questions_is_watched_like_the_queue_of_events(frail: Station) -> None:
    heard = Heard()
    await frail.consumer("admission", heard)
    await recreate(frail, request_queue("admission"))
    await consumed_or_alarmed(frail, request_queue("admission"))
    if not frail.alarmed.done():
        channel = await frail.channel("executor")
        asked = next(example for example in EXAMPLES if isinstance(example, ClaimRequested))
        said = promise("executor", asked, tenant="t", conversation="c")
        await frail.say(channel, "executor", "executor", said.wire, said.body)

        async def look() -> bool:
            return bool(heard.calls)

        await wait_until(look, "the question is handled")


@pytest.mark.req("M5", "M6")
async def test_b41_an_instance_notices_its_own_loss_though_another_consumes(frail: Station) -> None:
    """Two planners; one of them loses its channel for good. The queue has a consumer, but not that one's."""
    lost, other = Heard(), Heard()
    parking = ChannelBreaker(await frail.parking("planner", await frail.publisher("planner")))
    await frail.consumer("planner", lost, parking=parking)
    channel = await frail.channel("ingress")
    await frail.say(channel, "ingress", "ingress", TurnAccepted.wire, b"{not json")

    async def parked() -> bool:
        return bool(await frail.rows("planner", "parked"))

    await wait_until(parked, "the channel of the first is broken")
    await frail.consumer("planner", other)

    async def both() -> bool:
        return frail.alarmed.done() or (await frail.counts(inbox_queue("planner")))[1] == 2

    await wait_until(both, "both consume, or the alarm is raised", within=LONG)


@pytest.mark.req("M4")
async def test_the_executor_parks_on_its_dead_letter_queue_with_bytes_and_reason(station: Station) -> None:
    said = promise("admission", next(e for e in EXAMPLES if e.wire == "command.ready.v1"), tenant="t", conversation="c")
    body = json.dumps(json.loads(said.body) | {"type": "command.ready.v9"}).encode()
    channel = await station.channel("admission")
    await station.say(channel, "admission", "admission", said.wire, body)
    await station.consumer("executor", Heard())
    (found,) = await station.take(dead_queue("executor"), 1)
    assert (found.body, found.message_id, found.delivery_mode) == (body, "m-1", 2)
    assert found.headers["placet-reason"] == "unknown type 'command.ready.v9'"
    assert found.headers["placet-exchange"] == "placet.admission"
    assert found.headers["placet-routing-key"] == said.wire
    assert found.headers["placet-user-id"] == station.ground.run.user_prefix + "admission"
