"""The consumer: a delivery that is parked is kept whole, whatever is odd about it, and no other is taken for it."""

import json
from typing import Any

import pytest
from aio_pika.abc import AbstractIncomingMessage

from oddities import Nameless, say_oddly
from placet.contracts.catalogue import dead_queue, inbox_queue
from placet.contracts.examples import EXAMPLES
from placet.contracts.message import Message
from placet.contracts.turns import ToolCallSettled, TurnAccepted, TurnResumed, TurnRetried, TurnStalled
from placet.messaging import Cause, DatabaseParking, Handler, Kept, Promise, Stall, promise
from placet.messaging.parking import Parking
from placet.planner.stalls import Stalls
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
    await say_oddly(station, channel, "ingress", TurnAccepted.wire, good.body, Nameless)
    await station.consumer("planner", heard)
    assert await heard_one(heard) == Cause("planner", good.message_id, "t", "c", "")


@pytest.mark.req("M4")
async def test_b39_bad_messages_without_a_message_id_are_each_parked(station: Station) -> None:
    channel = await station.channel("ingress")
    for _ in range(3):
        await say_oddly(station, channel, "ingress", TurnAccepted.wire, b"{not json", Nameless)
    await station.consumer("planner", Heard())

    async def look() -> bool:
        return [row["message_id"] for row in await station.rows("planner", "parked")] == [None] * 3

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
@pytest.mark.parametrize(
    "header",
    ["\0", "\\u0000", bytearray(b"\xff"), {"in": ["\0"]}],
    ids=["NUL", "written NUL", "bytes", "inside"],
)
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


SETTLED = next(example for example in EXAMPLES if isinstance(example, ToolCallSettled))
TURN, CONVERSATION = SETTLED.turn_id, SETTLED.conversation_id


async def fails(_message: Message, _cause: Cause) -> None:
    raise ValueError("a fault")


class Planner:
    """The planner's consumer and stalls, with handlers of the test."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self.handler: Handler[Any] = fails

    async def start(self) -> None:
        """Consume."""
        parking = await self._station.parking("planner", await self._station.publisher("planner"))
        assert isinstance(parking, DatabaseParking)
        self.parking, self.stalls = parking, Stalls(parking, {ToolCallSettled: self._handle})
        consumer = await self._station.consumer("planner", Heard(), parking=parking)
        consumer.on(ToolCallSettled, self._handle, self.stalls.given_up)

    async def _handle(self, message: Message, cause: Cause) -> None:
        await self.handler(message, cause)

    async def parked(self, count: int) -> list[Kept]:
        """What stalls the turn, once so much is parked in all."""

        async def look() -> bool:
            return len(await self._station.rows("planner", "parked")) == count

        await wait_until(look, f"{count} are parked")
        return await self.parking.of_turn("t", TURN)

    async def retry(self, *stalls: str) -> None:
        """The owner's wish, handled."""
        asked = TurnRetried(turn_id=TURN, conversation_id=CONVERSATION, stalls=stalls)
        await self.stalls.on_turn_retried(asked, Cause("planner", "m-9", "t", CONVERSATION, ""))

    async def told(self) -> Json:
        """The one message that ingress has been told."""
        (message,) = await self._station.take(inbox_queue("ingress"), 1)
        return json.loads(message.body)["data"] | {"wire": message.type}


def settled(result: Any) -> Promise:
    return promise("admission", SETTLED.model_copy(update={"result": result}), tenant="t", conversation=CONVERSATION)


@pytest.mark.req("M4", "M3")
async def test_b17_what_stalls_a_turn_is_kept_byte_for_byte_and_handled_again_but_nothing_forged(station: Station) -> None:
    planner, true = Planner(station), settled({"authorization": "a field of the customer's, no token"})
    await planner.start()
    forged = said(ToolCallSettled, "ingress")
    await station.say(await station.channel("ingress"), "ingress", "ingress", TurnAccepted.wire, forged)
    await station.say(await station.channel("admission"), "admission", "admission", true.wire, true.body)
    (kept,) = await planner.parked(2)
    assert (kept.body, kept.attempts) == (true.body, 1)
    assert await planner.parking.of_turn("other", TURN) == []
    first = await planner.told()
    assert (first["wire"], first["stall_id"], first["attempt"]) == (TurnStalled.wire, kept.stall_id, 1)

    await planner.retry(kept.stall_id)
    again = await planner.told()
    assert (again["wire"], again["stall_id"], again["attempt"]) == (TurnStalled.wire, kept.stall_id, 2)
    heard = Heard()
    planner.handler = heard.note
    await planner.retry(kept.stall_id)
    assert heard.ids() == [true.message_id]
    over = await planner.told()
    assert (over["wire"], over["stall_id"]) == (TurnResumed.wire, kept.stall_id)
    (left,) = await station.rows("planner", "parked")
    assert (left["body"], left["turn_id"]) == (forged, None)


@pytest.mark.req("M4")
async def test_b17_a_stall_that_is_not_kept_any_more_is_told_to_be_over(station: Station) -> None:
    """Somebody has removed the row, or another instance has handled it: no state may be left that nothing can end."""
    planner = Planner(station)
    await planner.start()
    await planner.retry("stall_gone")
    assert (over := await planner.told())["wire"] == TurnResumed.wire
    assert over["stall_id"] == "stall_gone"


@pytest.mark.req("M4")
async def test_b17_what_cannot_be_read_any_more_holds_up_nothing_else_of_the_turn(station: Station) -> None:
    """As after an upgrade, when a kept message has a form that nobody knows."""
    planner, channel = Planner(station), await station.channel("admission")
    await planner.start()
    for number, message in enumerate((settled("one"), settled("two"))):
        await station.say(channel, "admission", "admission", message.wire, message.body, message_id=message.message_id)
        await planner.parked(number + 1)
    first, second = await planner.parking.of_turn("t", TURN)
    for _ in (first, second):
        await planner.told()
    query = f"update parked set body = '{{}}' where stall_id = '{first.stall_id}'"
    await station.execute("planner", query)
    heard = Heard()
    planner.handler = heard.note
    await planner.retry(first.stall_id, second.stall_id)
    told = {(news := await planner.told())["stall_id"]: news["wire"] for _ in range(2)}
    assert told == {first.stall_id: TurnStalled.wire, second.stall_id: TurnResumed.wire}
    assert len(heard.calls) == 1
    (left,) = await station.rows("planner", "parked")
    assert (left["stall_id"], left["attempts"]) == (first.stall_id, 2)
    assert left["reason"].startswith("Unreadable")


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
