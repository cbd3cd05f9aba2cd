"""The consumer loses its connection, its channel or its queue: it is back, or says so, and what it did stays done once."""

import asyncio
from functools import partial

import pytest
from aio_pika.abc import AbstractIncomingMessage

from placet.contracts.catalogue import SERVICES, Route, heard_by, inbox_queue, request_queue
from placet.contracts.examples import EXAMPLES
from placet.contracts.message import Message
from placet.contracts.turns import TurnAccepted
from placet.messaging import Cause, promise
from placet.messaging.parking import Parking, Stall
from placet.testing import wait_until
from stations import Heard, Station

SAMPLES = {example.wire: example for example in EXAMPLES}
EVENT = {service: next(iter(heard_by(service).values())) for service in SERVICES}
"""An event of each service."""
QUESTION = {service: next(iter(asked.values())) for service in SERVICES if (asked := heard_by(service, "request"))}
"""A question to each service that is asked something."""

LONG = 60.0
"""B41 grants ten seconds; a busy machine gets more."""

OUTSIDE = "planner"
"""The database in which the effects of any service are kept here: the executor has none."""

each_service = pytest.mark.parametrize("service", SERVICES)


async def say(station: Station, route: Route, *names: str) -> None:
    """The publisher of a message says it so often, named by its tenants."""
    channel = await station.channel(route.publisher)
    for name in names:
        said = promise(route.publisher, SAMPLES[route.wire], tenant=name, conversation="c")
        await station.say(channel, route.publisher, route.publisher, said.wire, said.body, message_id=said.message_id)


async def effect(station: Station, cause: Cause) -> None:
    """What a handler does, once by its natural key."""
    await station.execute(OUTSIDE, f"insert into deed values ('{cause.tenant}') on conflict do nothing")


async def effects(station: Station) -> list[str]:
    return sorted(row["name"] for row in await station.rows(OUTSIDE, "deed"))


async def recreate(station: Station, name: str) -> None:
    """Delete a queue and load the definitions again, as an operator does."""
    await station.operator.queue_delete(name)
    await station.ground.import_topology()


async def heard_or_ended(station: Station, heard: Heard, tenant: str) -> None:
    """A queue that is empty proves nothing: its message may be on its way to the handler."""

    async def look() -> bool:
        return bool(station.ended()) or tenant in heard.tenants()

    await wait_until(look, f"{tenant} is handled, or the consumer has ended", within=LONG)


@pytest.mark.req("M2", "M5")
@each_service
async def test_b41_a_connection_lost_between_effect_and_ack_costs_a_second_delivery_and_no_second_effect(
    service: str, station: Station
) -> None:
    wire, calls = await station.wire(), list[str]()
    await station.database(OUTSIDE)

    async def handler(_message: Message, cause: Cause) -> None:
        calls.append(cause.tenant)
        await effect(station, cause)
        if calls == ["one"]:
            wire.cut()
            await asyncio.sleep(0)

    consumer = await station.consumer(service, Heard(), {EVENT[service].message: handler}, wire=wire, prefetch=1)
    await say(station, EVENT[service], "one", "two")

    async def look() -> bool:
        return await effects(station) == ["one", "two"] and calls.count("one") > 1

    await wait_until(look, "both are done, the first twice", within=LONG)
    await station.leaves_nothing(consumer, service)
    assert await effects(station) == ["one", "two"]
    assert calls.count("one") == 2
    assert await station.parked(service) == []
    assert station.ended() == []


@pytest.mark.req("M2", "M5")
async def test_a_handler_under_way_when_the_connection_is_lost_is_called_again(station: Station) -> None:
    wire, calls = await station.wire(), list[str]()
    begun, over = asyncio.Event(), asyncio.Event()

    async def handler(_message: Message, cause: Cause) -> None:
        calls.append(cause.tenant)
        if len(calls) == 1:
            begun.set()
            await over.wait()

    consumer = await station.consumer("planner", Heard(), {TurnAccepted: handler}, wire=wire)
    await say(station, EVENT["planner"], "one")
    await begun.wait()
    wire.cut()

    async def look() -> bool:
        return len(calls) == 2

    await wait_until(look, "the message is handled again", within=LONG)
    over.set()
    await station.leaves_nothing(consumer, "planner")
    assert await station.parked("planner") == []
    assert station.ended() == []


async def closed(delivery: AbstractIncomingMessage) -> bool:
    return delivery.channel.is_closed


class ChannelBreaker:
    """Parks, then acknowledges what was never delivered: the broker closes the channel of the consumer."""

    def __init__(self, parking: Parking) -> None:
        self._parking = parking
        self.calls = 0

    async def park(self, delivery: AbstractIncomingMessage, reason: str, stall: Stall | None = None) -> None:
        await self._parking.park(delivery, reason, stall)
        self.calls += 1
        if self.calls == 1:
            await delivery.channel.basic_ack(delivery_tag=1_000_000)
            await wait_until(partial(closed, delivery), "the broker has closed the channel")


@pytest.mark.req("M4", "M5")
@each_service
async def test_b41_a_channel_error_costs_a_second_delivery_and_nothing_else(service: str, station: Station) -> None:
    heard, route = Heard(), EVENT[service]
    parking = ChannelBreaker(await station.parking(service, await station.publisher(service)))
    consumer = await station.consumer(service, heard, parking=parking)
    channel = await station.channel(route.publisher)
    await station.say(channel, route.publisher, route.publisher, route.wire, b"{not json")
    await say(station, route, "one", "two")

    async def look() -> bool:
        return parking.calls >= 2 and {"one", "two"} <= set(heard.tenants())

    await wait_until(look, "the bad one is parked again and the good ones are handled", within=LONG)
    assert {each.body for each in await station.parked(service)} == {b"{not json"}
    await station.leaves_nothing(consumer, service)
    assert set(heard.tenants()) == {"one", "two"}
    assert station.ended() == []


@pytest.mark.req("M2", "M5")
@pytest.mark.parametrize(
    ("service", "queue", "route"),
    [pytest.param(service, inbox_queue(service), route, id=service) for service, route in EVENT.items()]
    + [pytest.param(service, request_queue(service), route, id=f"{service}-asked") for service, route in QUESTION.items()],
)
async def test_b41_a_queue_that_is_deleted_and_made_again_is_consumed_again_or_ends_its_service(
    service: str, queue: str, route: Route, frail: Station
) -> None:
    """So it is with the real processes, in `test_consumer_process.py`."""
    heard = Heard()
    consumer = await frail.consumer(service, heard)
    await say(frail, route, "before")
    await heard_or_ended(frail, heard, "before")
    await recreate(frail, queue)
    await say(frail, route, "after")
    await heard_or_ended(frail, heard, "after")
    assert all(queue in reason for reason in frail.ended())
    if "after" in heard.tenants():
        await frail.leaves_nothing(consumer, service)
    else:
        await consumer.stop()
        assert (await frail.counts(queue))[0] == 1, "the message waits for the next process"


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
        return bool(frail.ended()) or (await frail.counts(inbox_queue("planner")))[1] == 2

    await wait_until(both, "both consume, or one has ended", within=LONG)
