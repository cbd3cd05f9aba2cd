"""The consumer: what is good is handled once, what is not is parked with its reason and bytes, and nothing vanishes."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from placet.contracts.catalogue import ROUTES, SERVICES, Route, dead_queue, heard_by
from placet.contracts.examples import EXAMPLES, TOKEN
from placet.contracts.message import MAX_BYTES, Command, Message
from placet.contracts.turns import TurnAccepted
from placet.messaging import Cause, promise
from placet.messaging.consumer import ATTEMPTS
from placet.testing import wait_until
from stations import Heard, Json, Parked, Station

SAMPLES = {example.wire: example for example in EXAMPLES}
HEARD = [
    pytest.param(service, route, id=f"{service}-{route.wire}")
    for service in SERVICES
    for kind in ("event", "request")
    for route in heard_by(service, kind).values()
]
"""All that each service hears, events and questions: they come over queues of their own."""
ACCEPTED = ROUTES[TurnAccepted.wire]


def sample(wire: str, **envelope: Any) -> Json:
    """A good envelope of a message, as a document; what is given here replaces its attributes."""
    made = promise(ROUTES[wire].publisher, SAMPLES[wire], tenant="t", conversation="c")
    return json.loads(made.body) | envelope


def encoded(document: Json) -> bytes:
    return json.dumps(document).encode()


def as_kept(body: bytes) -> bytes:
    """The original bytes, but for a person's token, which is never stored (P6)."""
    return body.replace(TOKEN.encode(), b"[removed]")


def with_data(wire: str, **data: Any) -> bytes:
    document = sample(wire)
    return encoded(document | {"data": document["data"] | data})


def without(wire: str, attribute: str) -> bytes:
    document = sample(wire)
    del document[attribute]
    return encoded(document)


def duplicated(wire: str) -> bytes:
    """The message with a field of its data twice: two readers, two meanings."""
    document = sample(wire)
    name, value = next(iter(document["data"].items()))
    data = json.dumps(document["data"])[:-1] + f", {json.dumps(name)}: {json.dumps(value)}}}"
    return encoded(document | {"data": "HERE"}).replace(b'"HERE"', data.encode())


BAD: dict[str, tuple[Callable[[str], bytes], str]] = {
    "not JSON": (lambda _: b"{not json", "not_json"),
    "not UTF-8": (lambda _: b"\xff\xfe\x00", "not_utf8"),
    "empty": (lambda _: b"", "not_json"),
    "not an object": (lambda _: b"[]", "not a JSON object"),
    "too large": (lambda _: b'"' + b"x" * MAX_BYTES + b'"', "too_large"),
    "too deep": (lambda _: b"[" * 100_000, "too_deep"),
    "unknown type": (lambda wire: encoded(sample(wire, type="no.such.v1")), "unknown type"),
    "unknown version": (lambda wire: encoded(sample(wire, type=wire.replace(".v1", ".v2"))), "unknown type"),
    "wrong content": (lambda wire: encoded(sample(wire, data={"nothing": "of it"})), "Field required"),
    "wrong kind of content": (lambda wire: encoded(sample(wire, data=[])), "valid dictionary"),
    "no id": (lambda wire: without(wire, "id"), "id is missing"),
    "no data": (lambda wire: without(wire, "data"), "data is missing"),
    "not CloudEvents": (lambda wire: without(wire, "specversion"), "specversion"),
    "duplicate key": (duplicated, "duplicate_key"),
    "NUL": (lambda wire: encoded(sample(wire, tenantid="\0")), "nul_character"),
}
"""Bytes that no service may handle, and what the reason says."""


async def parked(station: Station, service: str, count: int) -> list[Parked]:
    """All that the service has parked, once it is so much; nothing may have been rejected without a reason."""

    async def look() -> bool:
        rows = [] if service == "executor" else await station.rows(service, "parked")
        return len(rows) + (await station.counts(dead_queue(service)))[0] >= count

    await wait_until(look, f"{service} has parked {count}")
    found = await station.parked(service)
    assert len(found) == count, "the rest was rejected: it lies in the dead-letter queue without a reason"
    return found


async def heard_all(heard: Heard, ids: list[str]) -> None:
    """Each of these was handled, and each once."""

    async def look() -> bool:
        return len(heard.calls) >= len(ids)

    await wait_until(look, f"{len(ids)} are handled")
    assert sorted(heard.ids()) == sorted(ids)


@pytest.mark.req("M2", "M4")
@pytest.mark.parametrize(("service", "route"), HEARD)
async def test_b39_the_bad_are_parked_and_the_good_behind_them_handled_once(
    service: str, route: Route, station: Station
) -> None:
    heard, channel = Heard(), await station.channel(route.publisher)
    good = [sample(route.wire) for _ in range(3)]
    bad = {name: make(route.wire) for name, (make, _) in BAD.items()}
    for number, body in enumerate((encoded(good[0]), *bad.values(), *map(encoded, good[1:]))):
        await station.say(channel, route.publisher, route.publisher, route.wire, body, message_id=f"m-{number}")
    consumer = await station.consumer(service, heard)
    found = await parked(station, service, len(bad))
    await heard_all(heard, [each["id"] for each in good])
    await station.leaves_nothing(consumer, service)
    names = {as_kept(body): name for name, body in bad.items()}
    reasons = {names[each.body]: each.reason for each in found}
    assert (len(found), reasons.keys()) == (len(bad), bad.keys())
    assert [name for name, (_, why) in BAD.items() if why not in reasons[name]] == []


@pytest.mark.req("M4")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"[" + b"1" * 5000 + b"]", "number_out_of_range", id="more digits than int takes"),
        pytest.param(rb'{"\ud800": 1, "\ud800": 2}', "duplicate_key", id="a lone surrogate in the path"),
        pytest.param(rb'{"\u0000": 1, "\u0000": 2}', "duplicate_key", id="NUL in the path"),
    ],
)
@pytest.mark.parametrize("service", ["planner", "executor"])
async def test_b39_bytes_with_an_odd_reason_are_parked_with_it(
    service: str, body: bytes, reason: str, station: Station
) -> None:
    route = next(iter(heard_by(service).values()))
    channel = await station.channel(route.publisher)
    await station.say(channel, route.publisher, route.publisher, route.wire, body)
    await station.consumer(service, Heard())
    (found,) = await parked(station, service, 1)
    assert found.body == body
    assert reason in found.reason


@pytest.mark.req("M1", "M4")
@pytest.mark.parametrize(("service", "route"), HEARD)
async def test_b39_an_extra_field_is_ignored_in_an_event_and_refused_in_a_command(
    service: str, route: Route, station: Station
) -> None:
    heard, channel = Heard(), await station.channel(route.publisher)
    closed = issubclass(route.message, Command)
    odd, later = with_data(route.wire, added_in_v1_1=True), encoded(sample(route.wire, tenantid="t2", addedlater="x"))
    for number, body in enumerate((odd, later)):
        await station.say(channel, route.publisher, route.publisher, route.wire, body, message_id=f"m-{number}")
    await station.consumer(service, heard)
    found = await parked(station, service, int(closed))
    await heard_all(heard, [json.loads(body)["id"] for body in ((later,) if closed else (odd, later))])
    assert [(each.body, "added_in_v1_1" in each.reason) for each in found] == [(as_kept(odd), True)] * closed


@pytest.mark.req("M4")
@pytest.mark.parametrize(("service", "route"), HEARD)
async def test_b39_a_handler_that_raises_is_called_so_often_and_no_more(
    service: str, route: Route, station: Station
) -> None:
    heard, channel = Heard(), await station.channel(route.publisher)
    calls: list[str] = []

    async def handler(message: Message, cause: Cause) -> None:
        calls.append(cause.message_id)
        if cause.tenant == "poison":
            raise ValueError("cannot be done")
        await heard.note(message, cause)

    poison, good = sample(route.wire, tenantid="poison"), sample(route.wire)
    for number, document in enumerate((poison, good)):
        await station.say(channel, route.publisher, route.publisher, route.wire, encoded(document), message_id=f"m-{number}")
    consumer = await station.consumer(service, heard, {route.message: handler}, prefetch=1)
    (found,) = await parked(station, service, 1)
    await heard_all(heard, [good["id"]])
    await station.leaves_nothing(consumer, service)
    assert calls == [poison["id"]] * ATTEMPTS + [good["id"]]
    assert (found.body, found.reason) == (as_kept(encoded(poison)), "ValueError: cannot be done")


@pytest.mark.req("M4")
@pytest.mark.parametrize("service", ["planner", "executor"])
async def test_a_parked_delivery_is_kept_with_all_that_came_with_it(service: str, station: Station) -> None:
    route = next(iter(heard_by(service).values()))
    channel = await station.channel(route.publisher)
    await station.say(channel, route.publisher, route.publisher, route.wire, b"{not json", headers={"traceparent": "00-a"})
    await station.consumer(service, Heard())
    (found,) = await parked(station, service, 1)
    user = station.ground.run.user_prefix + route.publisher
    assert found == Parked(b"{not json", "not_json at offset 1", f"placet.{route.publisher}", route.wire, user)
    if service == "planner":
        (row,) = await station.rows(service, "parked")
        assert (row["message_id"], json.loads(row["headers"])["traceparent"]) == ("m-1", "00-a")


@pytest.mark.req("M4")
@pytest.mark.parametrize("service", ["planner", "executor"])
@pytest.mark.parametrize("error", ["\0", "\ud800", "x" * 5000], ids=["NUL", "surrogate", "long"])
async def test_a_reason_that_cannot_be_stored_as_it_is_is_stored_otherwise(
    service: str, error: str, station: Station
) -> None:
    route = next(iter(heard_by(service).values()))
    channel = await station.channel(route.publisher)

    async def handler(_message: Message, _cause: Cause) -> None:
        raise ValueError(error)

    body = encoded(sample(route.wire))
    await station.say(channel, route.publisher, route.publisher, route.wire, body)
    await station.consumer(service, Heard(), {route.message: handler})
    (found,) = await parked(station, service, 1)
    assert found.body == body
    assert found.reason.startswith("ValueError: ")
