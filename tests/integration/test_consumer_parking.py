"""The consumer: a delivery that is parked is kept whole, whatever is odd about it, and no other is taken for it."""

import pytest
from aio_pika.abc import AbstractIncomingMessage

from placet.contracts.catalogue import dead_queue, inbox_queue
from placet.contracts.examples import EXAMPLES
from placet.contracts.message import Message
from placet.contracts.turns import ToolCallSettled, TurnAccepted, TurnRequested, TurnStalled
from placet.messaging import Cause, DatabaseParking, Stall, handle_again, promise
from placet.messaging.parking import Parking
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


SETTLED = next(example for example in EXAMPLES if isinstance(example, ToolCallSettled))


async def stall(message: ToolCallSettled, cause: Cause, attempt: int) -> Stall:
    """What the planner says of a message that it gives up."""
    news = TurnStalled(turn_id=message.turn_id, conversation_id=message.conversation_id, revision=1, attempt=attempt)
    return Stall(cause.tenant, message.turn_id, cause.promise(news))


async def fails(_message: Message, _cause: Cause) -> None:
    raise ValueError("a fault")


@pytest.mark.req("M4", "M3")
async def test_b17_what_stalls_a_turn_is_kept_byte_for_byte_and_handled_again_but_nothing_forged(station: Station) -> None:
    parking = await station.parking("planner", await station.publisher("planner"))
    assert isinstance(parking, DatabaseParking)
    consumer = await station.consumer("planner", Heard(), parking=parking)
    consumer.on(ToolCallSettled, fails, stall)
    result = {"authorization": "a field of the customer's, no token"}
    true = promise("admission", SETTLED.model_copy(update={"result": result}), tenant="t", conversation="c")
    forged = said(ToolCallSettled, "ingress")
    await station.say(await station.channel("ingress"), "ingress", "ingress", TurnAccepted.wire, forged)
    await station.say(await station.channel("admission"), "admission", "admission", true.wire, true.body)

    async def both() -> bool:
        return len(await station.rows("planner", "parked")) == 2

    await wait_until(both, "both are parked")
    (told,) = await station.take(inbox_queue("ingress"), 1)
    assert (told.type, told.routing_key) == (TurnStalled.wire, TurnStalled.wire)
    (parked,) = await parking.of_turn("t", SETTLED.turn_id, [ToolCallSettled])
    assert (parked.envelope.message.result, parked.attempts) == (result, 1)
    assert await parking.of_turn("other", SETTLED.turn_id, [ToolCallSettled]) == []

    asked, heard = Cause("planner", "m-2", "t", "c", ""), Heard()
    await handle_again(parking, asked, SETTLED.turn_id, {ToolCallSettled: fails}, stall)
    (told,) = await station.take(inbox_queue("ingress"), 1)
    assert b'"attempt":2' in told.body
    await handle_again(parking, asked, SETTLED.turn_id, {ToolCallSettled: heard.note}, stall)
    assert heard.ids() == [true.message_id]
    (left,) = await station.rows("planner", "parked")
    assert (left["body"], left["turn_id"]) == (forged, None)


class Away:
    """Parking whose database is away the first time."""

    def __init__(self, parking: Parking) -> None:
        self._parking, self.calls = parking, 0

    async def park(self, delivery: AbstractIncomingMessage, reason: str, stall: Stall | None = None) -> None:
        """Keep the delivery, from the second call on."""
        self.calls += 1
        if self.calls == 1:
            raise ConnectionRefusedError("the database is away")
        await self._parking.park(delivery, reason, stall)


@pytest.mark.req("M4", "M5")
async def test_what_is_given_up_while_the_database_is_away_is_parked_when_it_is_back(station: Station) -> None:
    parking = Away(await station.parking("planner", await station.publisher("planner")))
    await station.consumer("planner", Heard(), {TurnAccepted: fails}, parking=parking)
    body = said(TurnAccepted, "ingress")
    await station.say(await station.channel("ingress"), "ingress", "ingress", TurnAccepted.wire, body)

    async def look() -> list[Json]:
        return await station.rows("planner", "parked")

    (row,) = await wait_until(look, "the delivery is parked")
    assert (row["body"], parking.calls) == (body, 2)
    assert await station.counts(dead_queue("planner")) == (0, 0)
