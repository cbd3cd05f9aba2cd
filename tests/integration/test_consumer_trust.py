"""The consumer: who may say what, what waiting can mend, and whom it answers."""

import asyncio
from collections import Counter

import asyncpg
import pytest
from aiormq.exceptions import AMQPConnectionError

from oddities import FarTime, NotText, Odd, say_oddly
from placet.contracts.catalogue import dead_queue, inbox_queue, reply_key
from placet.contracts.commands import ResourceResolve, ResourceResolved
from placet.contracts.examples import EXAMPLES
from placet.contracts.message import Message
from placet.contracts.permissions import DecisionAnswered, DecisionRelayed, PermissionAsked, PermissionDecided
from placet.contracts.turns import ToolCallProposed, ToolCallSettled, TurnAccepted
from placet.messaging import Cause, Consumer, NoAnswer, promise
from placet.testing import wait_until
from stations import OPERATOR, Heard, Json, Station

SAMPLES: dict[type[Message], Message] = {type(example): example for example in EXAMPLES}

OUTAGES = {
    "connection": ConnectionRefusedError("nobody listens"),
    "time": TimeoutError(),
    "shutdown": asyncpg.AdminShutdownError("terminating"),
    "deadlock": asyncpg.DeadlockDetectedError("deadlock"),
    "broker": AMQPConnectionError("gone"),
    "answer": NoAnswer("nobody answered"),
}


def said(kind: type[Message], by: str, *, tenant: str = "t") -> bytes:
    return promise(by, SAMPLES[kind], tenant=tenant, conversation="c").body


async def parked(station: Station, service: str) -> Json:
    """The one delivery that the service has parked."""

    async def look() -> list[Json]:
        return await station.rows(service, "parked")

    (row,) = await wait_until(look, f"{service} has parked something")
    assert await station.counts(dead_queue(service)) == (0, 0)
    return row


async def heard_one(heard: Heard) -> Cause:
    async def look() -> bool:
        return bool(heard.calls)

    await wait_until(look, "a message is handled")
    ((_, cause),) = heard.calls
    return cause


@pytest.mark.req("M3", "M4")
@pytest.mark.parametrize("claim", [None, OPERATOR])
async def test_what_another_user_says_on_an_exchange_is_parked_and_not_handled(claim: str | None, station: Station) -> None:
    heard, body = Heard(), said(TurnAccepted, "ingress")
    user = station.ground.run.user_prefix + claim if claim else None
    await station.say(station.operator, OPERATOR, "ingress", TurnAccepted.wire, body, user_id=user)
    good = promise("ingress", SAMPLES[TurnAccepted], tenant="t", conversation="c")
    channel = await station.channel("ingress")
    await station.say(channel, "ingress", "ingress", TurnAccepted.wire, good.body, message_id=good.message_id)
    await station.consumer("planner", heard)
    row = await parked(station, "planner")
    assert (row["body"], row["user_id"]) == (body, user)
    assert repr(user) in row["reason"]
    assert (await heard_one(heard)).message_id == good.message_id


@pytest.mark.req("M4", "M5")
@pytest.mark.parametrize("kind", [FarTime, NotText])
async def test_b39_properties_that_cannot_be_read_cost_their_own_message_only(kind: type[Odd], station: Station) -> None:
    """The client library would end the connection for them, again and again, until the broker gives up its neighbours."""
    heard, channel = Heard(), await station.channel("ingress")
    good = [promise("ingress", SAMPLES[TurnAccepted], tenant="t", conversation="c") for _ in range(2)]
    await station.say(channel, "ingress", "ingress", TurnAccepted.wire, good[0].body, message_id=good[0].message_id)
    body = said(TurnAccepted, "ingress")
    await say_oddly(station, channel, "ingress", TurnAccepted.wire, body, kind)
    await station.say(channel, "ingress", "ingress", TurnAccepted.wire, good[1].body, message_id=good[1].message_id)
    await station.consumer("planner", heard)
    row = await parked(station, "planner")
    assert (row["body"], row["user_id"]) == (body, None)
    assert "placet-unreadable" in row["headers"]

    async def both() -> bool:
        return sorted(heard.ids()) == sorted(each.message_id for each in good)

    await wait_until(both, "its neighbours are handled")


@pytest.mark.req("M3", "M4")
async def test_what_a_service_says_for_another_on_its_own_exchange_is_parked(station: Station) -> None:
    heard, body = Heard(), said(TurnAccepted, "ingress")
    channel = await station.channel("admission")
    await station.say(channel, "admission", "admission", ToolCallSettled.wire, body)
    consumer = await station.consumer("planner", heard)
    row = await parked(station, "planner")
    assert (row["body"], row["exchange"], row["routing_key"]) == (body, "placet.admission", ToolCallSettled.wire)
    assert "not over 'placet.ingress'" in row["reason"]
    await consumer.stop()
    assert heard.calls == []


@pytest.mark.req("M3")
async def test_a_message_is_tied_to_its_publisher_even_where_the_key_is_another(station: Station) -> None:
    """A planner that was taken over proposes; it cannot make admission hear a decision."""
    heard = Heard()
    forged = said(PermissionDecided, "permission")
    channel = await station.channel("planner")
    await station.say(channel, "planner", "planner", ToolCallProposed.wire, forged)
    consumer = await station.consumer("admission", heard)
    assert "not over 'placet.permission'" in (await parked(station, "admission"))["reason"]
    await consumer.stop()
    assert heard.calls == []


@pytest.mark.req("M5")
async def test_what_waiting_can_mend_waits_in_place_and_is_not_parked(station: Station) -> None:
    tried: Counter[str] = Counter()
    tasks: set[asyncio.Task[object] | None] = set()
    heard = Heard()

    async def handler(message: Message, cause: Cause) -> None:
        tasks.add(asyncio.current_task())
        tried[cause.tenant] += 1
        if tried[cause.tenant] <= 2:
            raise OUTAGES[cause.tenant]
        await heard.note(message, cause)

    channel = await station.channel("ingress")
    for outage in OUTAGES:
        await station.say(channel, "ingress", "ingress", TurnAccepted.wire, said(TurnAccepted, "ingress", tenant=outage))
    consumer = await station.consumer("planner", heard, {TurnAccepted: handler})

    async def look() -> bool:
        return len(heard.calls) == len(OUTAGES)

    await wait_until(look, "all are handled")
    await consumer.stop()
    assert tried == dict.fromkeys(OUTAGES, 3)
    assert len(tasks) == len(OUTAGES), "one delivery each: nothing went back to the queue"
    assert await station.rows("planner", "parked") == []
    assert await station.counts(inbox_queue("planner")) == await station.counts(dead_queue("planner")) == (0, 0)


@pytest.mark.req("M4", "M5")
async def test_failures_count_apart_from_waits(station: Station) -> None:
    """An outage in between is no excuse for a handler that raises, and no reason to give up earlier."""
    calls: list[Exception] = []
    errors = [ValueError("one"), OUTAGES["time"], ValueError("two"), OUTAGES["broker"], ValueError("three")]

    async def handler(_message: Message, _cause: Cause) -> None:
        calls.append(errors[len(calls)])
        raise calls[-1]

    channel = await station.channel("ingress")
    await station.say(channel, "ingress", "ingress", TurnAccepted.wire, said(TurnAccepted, "ingress"))
    await station.consumer("planner", Heard(), {TurnAccepted: handler})
    assert (await parked(station, "planner"))["reason"] == "ValueError: three"
    assert calls == errors


async def test_a_consumer_that_lacks_a_handler_does_not_start(station: Station) -> None:
    publisher = await station.publisher("planner")
    consumer = Consumer(
        "planner",
        station.ground.amqp("planner"),
        parking=await station.parking("planner", publisher),
        publisher=publisher,
        prefetch=1,
        user_prefix="",
    )
    consumer.on(TurnAccepted, Heard().note)
    with pytest.raises(LookupError, match=r"permission\.requested\.v1, tool_call\.settled\.v1"):
        await consumer.start()


@pytest.mark.req("M3", "U2")
@pytest.mark.parametrize(
    "reply_to",
    [
        "command.reported.v1",
        "permission.decided.v1",
        reply_key("permission", 0),
        "reply.admission.0.more",
        "xreply.admission.0",
        "#",
        "dead.executor",
        None,
    ],
)
async def test_an_answer_goes_nowhere_but_to_a_reply_key_of_the_asker(reply_to: str | None, station: Station) -> None:
    async def answer(_message: Message, _cause: Cause) -> Message:
        return SAMPLES[ResourceResolved]

    spy, channel = await station.spy("executor"), await station.channel("admission")
    asked = said(ResourceResolve, "admission")
    await station.say(
        channel, "admission", "admission", ResourceResolve.wire, asked, reply_to=reply_to, correlation_id="bad"
    )
    good = reply_key("admission", 3)
    await station.say(channel, "admission", "admission", ResourceResolve.wire, asked, reply_to=good, correlation_id="good")
    await station.consumer("executor", Heard(), {ResourceResolve: answer}, prefetch=1)
    (reply,) = await station.take(spy.name, 1)
    assert (reply.correlation_id, reply.routing_key) == ("good", good)
    assert reply.user_id == station.ground.run.user_prefix + "executor"
    assert await spy.get(no_ack=True, fail=False) is None


@pytest.mark.req("M3")
async def test_an_event_is_answered_only_to_who_said_it(station: Station) -> None:
    async def answer(_message: Message, _cause: Cause) -> Message:
        return SAMPLES[DecisionAnswered]

    spy = await station.spy("permission")
    ingress, admission = await station.channel("ingress"), await station.channel("admission")
    mine = reply_key("ingress", 0)
    handlers = {DecisionRelayed: answer, PermissionAsked: answer}
    asked, relayed = said(PermissionAsked, "admission"), said(DecisionRelayed, "ingress")
    await station.say(admission, "admission", "admission", PermissionAsked.wire, asked, reply_to=mine)
    await station.say(ingress, "ingress", "ingress", DecisionRelayed.wire, relayed, reply_to="permission.decided.v1")
    await station.say(ingress, "ingress", "ingress", DecisionRelayed.wire, relayed, reply_to=mine, correlation_id="good")
    await station.consumer("permission", Heard(), handlers, prefetch=1)
    (reply,) = await station.take(spy.name, 1)
    assert (reply.correlation_id, reply.routing_key) == ("good", mine)
    assert await spy.get(no_ack=True, fail=False) is None


@pytest.mark.req("M5", "M6")
async def test_stopping_finishes_what_is_under_way_and_leaves_the_rest(station: Station) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    heard, channel = Heard(), await station.channel("ingress")

    async def handler(message: Message, cause: Cause) -> None:
        begun.set()
        await go.wait()
        await heard.note(message, cause)

    for _ in range(2):
        await station.say(channel, "ingress", "ingress", TurnAccepted.wire, said(TurnAccepted, "ingress"))
    consumer = await station.consumer("planner", heard, {TurnAccepted: handler}, prefetch=1)
    await begun.wait()
    stopping = asyncio.create_task(consumer.stop())
    go.set()
    await stopping

    async def conserved() -> bool:
        ready, _ = await station.counts(inbox_queue("planner"))
        return ready + len(heard.calls) == 2

    await wait_until(conserved, "what is not handled is ready again")
    assert len(heard.calls) >= 1
