"""The publisher: what counts as not sent."""

import asyncio

import pytest

from placet.contracts.catalogue import inbox_queue
from placet.messaging import Promise, line
from placet.messaging import publisher as publishing
from placet.messaging.publisher import Properties
from stations import Station


@pytest.mark.req("M2")
@pytest.mark.parametrize("missing", [None, ""])
async def test_b39_what_has_no_message_id_is_refused_at_the_sender(missing: str | None, station: Station) -> None:
    publisher, spy = await station.publisher("planner"), await station.spy("planner")
    with pytest.raises(ValueError, match="no message id"):
        await publisher.send(b"{}", Properties(message_id=missing, user_id=publisher.user), "tool_call.proposed.v1")
    assert await spy.get(no_ack=True, fail=False) is None


@pytest.mark.req("M2")
async def test_b39_a_promise_without_a_message_id_is_not_sent_and_holds_up_no_neighbour(station: Station) -> None:
    publisher, spy = await station.publisher("planner"), await station.spy("planner")
    promises = [Promise(name, "tool_call.proposed.v1", b"{}", "") for name in ("m-1", "", "m-2")]
    first, missing, last = await publisher.publish(promises)
    assert (first, last) == (None, None)
    assert "no message id" in str(missing)
    assert {message.message_id for message in await station.take(spy.name, 2)} == {"m-1", "m-2"}
    assert await spy.get(no_ack=True, fail=False) is None


@pytest.mark.req("M2")
async def test_b44_a_promise_in_flight_twice_is_returned_twice(station: Station) -> None:
    """The relay may find a promise that its handler is only just publishing; neither may take it for sent."""
    publisher, lost = await station.publisher("permission"), Promise("m-lost", "permission.unheard.v1", b"{}", "")
    first, second = await asyncio.gather(publisher.publish([lost]), publisher.publish([lost], again=True))
    assert ["NO_ROUTE" in str(error) for error in first + second] == [True, True]


@pytest.mark.req("M5")
async def test_b41_a_look_at_a_queue_over_a_line_that_fell_silent_is_a_lost_connection(station: Station) -> None:
    """The client library cancels whoever waits when the heartbeat is missed: who looks on must not end with it."""
    wire = await station.wire(heartbeat=1)
    publisher = await station.publisher("planner", wire)
    wire.fall_silent()
    with pytest.raises((ConnectionError, TimeoutError)):
        await publisher.passive(inbox_queue("planner"))


@pytest.mark.req("M5")
async def test_a_publisher_whose_line_takes_nothing_more_can_be_stopped(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client library waits for the last byte to leave; the service must end all the same."""
    monkeypatch.setattr(publishing, "CONFIRM_SECONDS", 1.0)
    monkeypatch.setattr(line, "CLOSE_SECONDS", 1.0)
    wire = await station.wire()
    publisher = await station.publisher("planner", wire)
    wire.fall_silent()
    more_than_any_buffer = bytes(32 * 1024 * 1024)
    unsent = await publisher.send(more_than_any_buffer, Properties(message_id="m-1", user_id=publisher.user), "any.v1")
    assert unsent is not None
    await publisher.stop()
    with pytest.raises((RuntimeError, ConnectionError)):
        await publisher.passive(inbox_queue("planner"))
