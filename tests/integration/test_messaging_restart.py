"""The broker dies, comes back, or stands still under load: services wait, reconnect, and lose nothing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from placet.contracts.commands import ResourceResolve, ResourceResolved
from placet.contracts.examples import EXAMPLES
from placet.contracts.message import Message
from placet.contracts.turns import TurnAccepted
from placet.local.private import PrivateRabbitMQ
from placet.messaging import Cause, Consumer, NoAnswer, Outbox, Promise, promise
from placet.testing import wait_until
from stations import DEED, Heard, Station

ACCEPTED = next(example for example in EXAMPLES if isinstance(example, TurnAccepted))
LONG = 90.0


def accepted() -> Promise:
    return promise("ingress", ACCEPTED, tenant="t", conversation="c")


async def on_disk(frail: Station, broker: PrivateRabbitMQ) -> None:
    """Every quorum queue outlives a kill from now on."""
    queues = [each["name"] for each in frail.ground.topology["queues"] if each["arguments"]["x-queue-type"] == "quorum"]

    def look_now() -> bool:
        return all(broker.holds_on_disk(frail.ground.run.vhost, queue) for queue in queues)

    async def look() -> bool:
        return await asyncio.to_thread(look_now)

    await wait_until(look, "the queues are on the broker's disk")


@asynccontextmanager
async def killed(broker: PrivateRabbitMQ) -> AsyncGenerator[None]:
    """The broker is away for the block."""
    await asyncio.to_thread(broker.kill)
    try:
        yield
    finally:
        await asyncio.to_thread(broker.start)


async def outbox_empty(frail: Station) -> None:
    async def look() -> bool:
        return not await frail.rows("ingress", "outbox")

    await wait_until(look, "every promise is kept", within=LONG)


async def commit(outbox: Outbox, said: list[Promise]) -> None:
    for each in said:
        await outbox.commit(DEED, [each], name=each.message_id)


@pytest.mark.req("M2", "M5")
async def test_b17_what_is_promised_while_the_broker_is_away_is_said_when_it_is_back(
    frail: Station, broker: PrivateRabbitMQ
) -> None:
    await on_disk(frail, broker)
    outbox = await frail.outbox("ingress", grace=0.5, relay=True)
    said = [accepted() for _ in range(20)]
    async with killed(broker):
        await commit(outbox, said)
        assert len(await frail.rows("ingress", "outbox")) == len(said)
    await outbox_empty(frail)
    heard = Heard()
    await frail.consumer("planner", heard)
    await heard_all(heard, said)
    assert len(await frail.rows("ingress", "deed")) == len(said)


async def heard_all(heard: Heard, said: list[Promise]) -> None:
    wanted = {each.message_id for each in said}

    async def look() -> bool:
        return wanted <= set(heard.ids())

    await wait_until(look, f"all {len(wanted)} are handled", within=LONG)
    assert set(heard.ids()) == wanted


@pytest.mark.req("M2", "M5")
async def test_a_broker_that_is_restarted_under_load_loses_nothing(frail: Station, broker: PrivateRabbitMQ) -> None:
    await on_disk(frail, broker)
    heard, said = Heard(), [accepted() for _ in range(300)]
    halfway = asyncio.Event()

    async def handler(message: Message, cause: Cause) -> None:
        await heard.note(message, cause)
        if len(heard.calls) == 40:
            halfway.set()

    outbox = await frail.outbox("ingress", grace=0.5, relay=True)
    consumer = await frail.consumer("planner", heard, {TurnAccepted: handler})
    load = asyncio.create_task(commit(outbox, said))
    await halfway.wait()
    late = [accepted() for _ in range(50)]
    async with killed(broker):
        await load
        await commit(outbox, late)
        assert len(await frail.rows("ingress", "outbox")) >= len(late)
    said += late
    await outbox_empty(frail)
    await heard_all(heard, said)
    await nothing_left(frail, consumer, heard)
    assert len(await frail.rows("ingress", "deed")) == len(said)


async def nothing_left(frail: Station, consumer: Consumer, heard: Heard) -> None:
    """Conservation (G4): what the consumer gives back was handled, and on its way once more."""
    assert frail.ended() == []
    assert set(await frail.leaves(consumer, "planner")) <= set(heard.ids())
    assert await frail.parked("planner") == []


@pytest.mark.req("M2", "M5")
async def test_a_broker_that_stands_still_costs_duplicates_at_most(frail: Station, broker: PrivateRabbitMQ) -> None:
    await on_disk(frail, broker)
    heard, said = Heard(), [accepted() for _ in range(5)]
    outbox = await frail.outbox("ingress", grace=0.5, relay=True)
    consumer = await frail.consumer("planner", heard)
    broker.pause()
    try:
        await commit(outbox, said)

        async def tried() -> bool:
            rows = await frail.rows("ingress", "outbox")
            assert (len(rows), heard.calls) == (len(said), []), "a broker that stands still takes nothing"
            return all(row["last_error"] for row in rows)

        await wait_until(tried, "every promise has been tried in vain", within=LONG)
    finally:
        broker.resume()
    await outbox_empty(frail)
    await heard_all(heard, said)
    await nothing_left(frail, consumer, heard)


@pytest.mark.req("M5")
async def test_questions_are_answered_again_after_the_broker_is_back(frail: Station, broker: PrivateRabbitMQ) -> None:
    async def answer(message: ResourceResolve, _cause: Cause) -> Message:
        return ResourceResolved(resource=message.resource, exists=True)

    async def ask() -> ResourceResolved | None:
        question = ResourceResolve(action="crm.customer.get", resource="C-42")
        try:
            return await asker.ask(question, ResourceResolved, tenant="t", timeout=2.0)
        except NoAnswer:
            return None

    await on_disk(frail, broker)
    asker = await frail.requester("admission")
    await frail.consumer("executor", Heard(), {ResourceResolve: answer})
    await wait_until(ask, "an answer")
    async with killed(broker):
        assert await ask() is None
    await wait_until(ask, "an answer after the restart", within=LONG)
    assert frail.ended() == []
