"""The consumer: a delivery that is parked is kept whole, whatever is odd about it, and no other is taken for it."""

import pytest

from placet.contracts.catalogue import dead_queue, inbox_queue
from placet.contracts.examples import EXAMPLES
from placet.contracts.message import Message
from placet.contracts.turns import TurnAccepted, TurnRequested
from placet.messaging import Cause, promise
from placet.testing import wait_until
from stations import Heard, Json, Station

SAMPLES: dict[type[Message], Message] = {type(example): example for example in EXAMPLES}


def said(kind: type[Message], by: str, *, tenant: str = "t") -> bytes:
    return promise(by, SAMPLES[kind], tenant=tenant, conversation="c").body


async def heard_one(heard: Heard) -> Cause:
    async def look() -> bool:
        return bool(heard.calls)

    await wait_until(look, "a message is handled")
    ((_, cause),) = heard.calls
    return cause


async def test_a_message_without_the_broker_s_message_id_is_known_by_its_envelope(station: Station) -> None:
    heard, channel = Heard(), await station.channel("ingress")
    good = promise("ingress", SAMPLES[TurnAccepted], tenant="t", conversation="c")
    await station.say(channel, "ingress", "ingress", TurnAccepted.wire, good.body, message_id=None)
    await station.consumer("planner", heard)
    assert await heard_one(heard) == Cause("planner", good.message_id, "t", "c", "")


@pytest.mark.req("M4")
async def test_b39_bad_messages_without_a_message_id_are_each_parked(station: Station) -> None:
    channel = await station.channel("ingress")
    for _ in range(3):
        await station.say(channel, "ingress", "ingress", TurnAccepted.wire, b"{not json", message_id=None)
    await station.consumer("planner", Heard())

    async def look() -> bool:
        return len(await station.rows("planner", "parked")) == 3

    await wait_until(look, "three are parked")


@pytest.mark.req("M4")
async def test_b39_two_bad_messages_with_one_message_id_are_both_parked(station: Station) -> None:
    channel = await station.channel("ingress")
    bodies = [b'{not json "one"', b'{not json "two"']
    for body in bodies:
        await station.say(channel, "ingress", "ingress", TurnAccepted.wire, body, message_id="m-1")
    heard = Heard()
    good = said(TurnAccepted, "ingress")
    await station.say(channel, "ingress", "ingress", TurnAccepted.wire, good, message_id="m-2")
    consumer = await station.consumer("planner", heard, prefetch=1)
    await heard_one(heard)
    await consumer.stop()
    assert await station.counts(inbox_queue("planner")) == (0, 0)
    assert sorted(row["body"] for row in await station.rows("planner", "parked")) == bodies


@pytest.mark.req("M4")
@pytest.mark.parametrize("header", ["\0", bytearray(b"\xff")], ids=["NUL", "bytes"])
async def test_odd_headers_do_not_keep_a_delivery_from_being_parked(header: object, station: Station) -> None:
    channel = await station.channel("ingress")
    await station.say(channel, "ingress", "ingress", TurnAccepted.wire, b"{not json", headers={"odd": header})

    async def look() -> bool:
        rows = await station.rows("planner", "parked")
        return bool(rows) or (await station.counts(dead_queue("planner")))[0] > 0

    await station.consumer("planner", Heard())
    await wait_until(look, "the delivery is somewhere")
    (row,) = await station.rows("planner", "parked")
    assert row["reason"] == "not_json at offset 1"


@pytest.mark.req("P6", "M4")
@pytest.mark.parametrize(
    "body",
    [
        b'{"authorization": "TOKEN", "odd": 1}',
        b'{"authorization": "TOKEN", "authorization": "TOKEN"}',
        b'{"authorization": "TOKEN',
        rb'{"authorization": "a\"TOKEN"}',
        rb'{"authoriz\u0061tion": "TOKEN"}',
    ],
    ids=["whole", "twice", "cut off", "with a quote", "escaped name"],
)
async def test_a_token_is_not_kept_with_what_is_parked(body: bytes, station: Station) -> None:
    channel = await station.channel("frontend")
    await station.say(channel, "frontend", "frontend", TurnRequested.wire, body)
    await station.consumer("ingress", Heard())

    async def look() -> list[Json]:
        return await station.rows("ingress", "parked")

    (row,) = await wait_until(look, "the delivery is parked")
    assert b"TOKEN" not in row["body"]
    assert row["body"].startswith(b'{"auth')
