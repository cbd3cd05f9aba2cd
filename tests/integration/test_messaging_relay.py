"""The relay: every promise is kept, whatever happened between the commit and the confirm."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from placet.contracts.catalogue import ROUTES, exchange, inbox_queue
from placet.contracts.examples import EXAMPLES
from placet.contracts.permissions import PermissionDecided, PermissionRequested
from placet.messaging import Outbox, Promise, promise
from placet.service.crash import CRASHED
from placet.telemetry import current_traceparent
from placet.testing import wait_until
from stations import DEED, Json, Station

DECIDED = next(example for example in EXAMPLES if isinstance(example, PermissionDecided))
REQUESTED = next(example for example in EXAMPLES if isinstance(example, PermissionRequested))
HEARS = inbox_queue("admission")
"""Gets permission.decided, and nothing else of what permission says."""

CHILD = """
import asyncio, sys
from placet.messaging import Outbox, Promise, Publisher
from placet.service.database import Database
from stations import DEED


async def commit(postgres, amqp):
    database, publisher = Database(postgres, size=1), Publisher("permission", amqp)
    outbox = Outbox(database, publisher, grace=3600)
    for part in (database, publisher, outbox):
        await part.start()
    await outbox.commit(DEED, [Promise("m-1", "permission.decided.v1", b"{}", "")], name="decided")
    await outbox.stop()

asyncio.run(commit(*sys.argv[1:]))
"""


def decided() -> Promise:
    return promise("permission", DECIDED, tenant="t", conversation="c")


def requested() -> Promise:
    return promise("permission", REQUESTED, tenant="t", conversation="c")


async def forget(station: Station, *promises: Promise, name: str = "decided") -> None:
    """Commit as a process does that dies before it publishes."""
    row = await (await station.database("permission")).transition(DEED, promises=list(promises), name=name)
    assert row["changed"]


async def ids(station: Station, count: int) -> list[str | None]:
    """The ids of so many messages, which are all that the queue holds."""
    found = [message.message_id for message in await station.take(HEARS, count)]
    assert await station.counts(HEARS) == (0, 0)
    return found


async def relay_until_tried(station: Station, outbox: Outbox, attempts: int) -> Json:
    """The one row that is left, once the relay has tried it so often."""

    async def look() -> Json | None:
        await outbox.relay_once()
        (row,) = await station.rows("permission", "outbox")
        return row if row["attempts"] >= attempts else None

    return await wait_until(look, f"{attempts} attempts")


@pytest.mark.req("M2")
@pytest.mark.parametrize(
    ("moment", "published", "left"), [("before_commit.deed", 0, 0), ("after_commit.deed", 0, 1), ("after_publish", 1, 1)]
)
async def test_b17_what_a_crash_leaves_behind_is_published_by_the_relay(
    moment: str, published: int, left: int, station: Station
) -> None:
    outbox = await station.outbox("permission")
    environment = os.environ | {"PLACET_CRASH_AT": f":{moment}", "PYTHONPATH": str(Path(__file__).parents[1])}
    logins = (station.ground.postgres("permission"), station.ground.amqp("permission"))
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, *logins, env=environment)
    assert await child.wait() == CRASHED
    assert len(await station.rows("permission", "outbox")) == len(await station.rows("permission", "deed")) == left
    assert await ids(station, published) == ["m-1"] * published
    assert await outbox.relay_once() == left
    assert await ids(station, left) == ["m-1"] * left
    assert await station.rows("permission", "outbox") == []


@pytest.mark.req("M2")
async def test_the_relay_leaves_alone_what_is_younger_than_the_grace(station: Station) -> None:
    outbox = await station.outbox("permission", grace=3600)
    await forget(station, decided())
    assert await outbox.relay_once() == 0
    assert len(await station.rows("permission", "outbox")) == 1


async def test_b46_a_relayed_message_carries_the_context_stored_with_its_row(station: Station) -> None:
    outbox, tracer = await station.outbox("permission"), TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("handler"):
        expected, said = current_traceparent(), decided()
    await forget(station, said)
    with tracer.start_as_current_span("relay"):
        assert await outbox.relay_once() == 1
    (message,) = await station.take(HEARS, 1)
    assert message.headers["traceparent"] == expected
    assert f'"traceparent":"{expected}"'.encode() in message.body


@pytest.mark.req("M2")
async def test_b44_a_promise_stays_while_nobody_at_all_is_bound_for_it(station: Station) -> None:
    outbox = await station.outbox("permission")
    said = decided()
    queues = [inbox_queue(name) for name in ROUTES[DECIDED.wire].consumers]
    bound = [await station.operator.get_queue(queue, ensure=False) for queue in queues]
    for queue in bound:
        await queue.unbind(exchange("permission"), DECIDED.wire)
    try:
        await outbox.commit(DEED, [said], name="decided")
        row = await relay_until_tried(station, outbox, 2)
        assert (row["message_id"], row["body"]) == (said.message_id, said.body)
        assert "NO_ROUTE" in row["last_error"]
    finally:
        for queue in bound:
            await queue.bind(exchange("permission"), DECIDED.wire)
    await relay_until_kept(station, outbox)
    assert await ids(station, 1) == [said.message_id]


async def relay_until_kept(station: Station, outbox: Outbox) -> None:
    async def look() -> bool:
        await outbox.relay_once()
        return not await station.rows("permission", "outbox")

    await wait_until(look, "the relay has kept every promise")


@pytest.mark.req("M2")
async def test_b44_one_unbound_consumer_among_several_goes_unnoticed_until_the_definitions_are_loaded(
    station: Station,
) -> None:
    """What the broker cannot tell us, as ADR 0008 says: it confirms what any queue has taken."""
    outbox, unheard, heard = await station.outbox("permission"), decided(), decided()
    unbound = await station.operator.get_queue(HEARS, ensure=False)
    await unbound.unbind(exchange("permission"), DECIDED.wire)
    try:
        await forget(station, unheard, name="unheard")
        assert await outbox.relay_once() == 1
        assert await station.rows("permission", "outbox") == []
        assert await station.counts(HEARS) == (0, 0)
    finally:
        await station.ground.import_topology()
    await forget(station, heard, name="heard")
    assert await outbox.relay_once() == 1
    assert await ids(station, 1) == [heard.message_id]


@pytest.mark.req("M2")
async def test_b44_a_promise_that_nobody_hears_holds_up_no_neighbour(station: Station) -> None:
    outbox = await station.outbox("permission")
    lost = Promise("m-lost", "permission.unheard.v1", b"{}", "")
    good = [decided() for _ in range(5)]
    await forget(station, *good[:2], lost, *good[2:])
    assert await outbox.relay_once() == 5
    assert await ids(station, 5) == [each.message_id for each in good]
    assert [row["message_id"] for row in await station.rows("permission", "outbox")] == ["m-lost"]


@pytest.mark.req("M2", "M3")
async def test_a_promise_that_the_broker_refuses_holds_up_no_neighbour(station: Station) -> None:
    """The broker closes the channel for a refused message, and with it what its neighbours had in flight."""
    run = station.ground.run
    user = f"{run.user_prefix}permission"
    only_decided = {"user": user, "vhost": run.vhost, "exchange": exchange("permission"), "write": r"^permission\.decided\."}
    await station.ground.import_topology(topic_permissions=[only_decided | {"read": ".*"}])
    try:
        outbox = await station.outbox("permission")
        good = [decided() for _ in range(6)]
        await forget(station, *good[:3], requested(), *good[3:])
        assert await outbox.relay_once() == 6
        (left,) = await station.rows("permission", "outbox")
        assert (left["wire"], left["attempts"]) == (REQUESTED.wire, 1)
        assert "ACCESS_REFUSED" in left["last_error"]
        assert set(await received(station)) == {each.message_id for each in good}
    finally:
        await station.ground.import_topology(topic_permissions=[only_decided | {"read": ".*", "write": ".*"}])


@pytest.mark.req("M2", "M3")
async def test_a_connection_closed_under_a_batch_is_waited_for(station: Station) -> None:
    """A refused message may end the whole connection, when another publish crosses the broker's closing of the channel."""
    wire = await station.wire()
    publisher = await station.publisher("permission", wire)
    outbox = Outbox(await station.database("permission"), publisher, grace=0.0)
    good = [decided() for _ in range(6)]
    await forget(station, *good)
    wire.refuse_next = True
    assert await outbox.relay_once() == 6
    assert not await station.rows("permission", "outbox")
    assert set(await received(station)) == {each.message_id for each in good}


async def received(station: Station) -> list[str | None]:
    """The ids of all that the queue holds. Neighbours of a refused message may come twice."""
    count, _ = await station.counts(HEARS)
    return [message.message_id for message in await station.take(HEARS, count)]


@pytest.mark.req("M2", "M6")
async def test_two_relays_do_not_publish_the_same_promise(station: Station) -> None:
    relays = [await station.outbox("permission") for _ in range(2)]
    said = [decided() for _ in range(100)]
    await forget(station, *said)
    counts: list[int] = []
    while batch := sum(await asyncio.gather(*(relay.relay_once() for relay in relays))):
        counts.append(batch)
    assert sum(counts) == 100
    assert set(await ids(station, 100)) == {each.message_id for each in said}


@pytest.mark.req("M2", "M5")
async def test_promises_wait_out_a_lost_connection(station: Station) -> None:
    wire = await station.wire()
    publisher = await station.publisher("permission", wire)
    outbox = Outbox(await station.database("permission"), publisher, grace=0.0)
    wire.cut(open_again=False)
    said = [decided() for _ in range(10)]
    for number, each in enumerate(said):
        await outbox.commit(DEED, [each], name=str(number))
    assert await outbox.relay_once() == 0
    assert len(await station.rows("permission", "outbox")) == 10
    wire.open = True
    await relay_until_kept(station, outbox)
    assert set(await received(station)) == {each.message_id for each in said}
