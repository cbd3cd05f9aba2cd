"""Questions: many in flight at once, answered by nobody but whom was asked, given up in time, and asked again."""

import asyncio
import gc

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage
from aiormq.exceptions import ChannelAccessRefused

from placet.contracts.catalogue import REPLY_SLOTS, dead_queue, exchange, reply_queue, request_queue
from placet.contracts.commands import ResourceResolve, ResourceResolved
from placet.contracts.message import Message
from placet.contracts.permissions import DecisionVerified, DecisionVerify
from placet.messaging import Cause, NoAnswer, Requester, promise
from placet.testing import wait_until
from stations import OPERATOR, Heard, Station
from wires import Wire

PATIENT = 60.0
"""Seconds for an answer that must come: generous, for a busy machine."""

MANY = 200


def question(resource: str = "C-42") -> ResourceResolve:
    return ResourceResolve(action="crm.customer.get", resource=resource)


VERIFY = DecisionVerify(interrupt_id="int_1", operation_id="op_1", digest="sha256:" + "0" * 64)


async def answer(message: ResourceResolve, _cause: Cause) -> Message:
    return ResourceResolved(resource=message.resource, exists=True)


async def ask(requester: Requester, resource: str = "C-42", timeout: float = PATIENT) -> str:
    found = await requester.ask(question(resource), ResourceResolved, tenant="t", timeout=timeout)
    return found.resource


async def reply(
    station: Station, asked: AbstractIncomingMessage, verdict: str, *, by: str, user: str | None, over: str
) -> None:
    """Answer a decision.verify as anybody."""
    said = promise(
        "permission",
        DecisionVerified.model_validate({"operation_id": "op_1", "verdict": verdict}),
        tenant="t",
        conversation="",
    )
    channel = await station.channel(by)
    name = station.ground.run.user_prefix + user if user else None
    await station.say(
        channel, by, over, asked.reply_to or "", said.body, user_id=name, correlation_id=asked.correlation_id, type=said.wire
    )


async def test_many_questions_are_in_flight_at_once(station: Station) -> None:
    """The answerer answers none before all have been asked: one after the other, they would wait for ever."""
    waiting: set[str] = set()
    all_here = asyncio.Event()

    async def slow(message: ResourceResolve, cause: Cause) -> Message:
        waiting.add(message.resource)
        if len(waiting) == MANY:
            all_here.set()
        await all_here.wait()
        return await answer(message, cause)

    await station.consumer("executor", Heard(), {ResourceResolve: slow}, prefetch=MANY)
    requester = await station.requester("admission")
    resources = [f"C-{number}" for number in range(MANY)]
    assert await asyncio.gather(*(ask(requester, each) for each in resources)) == resources


async def test_a_question_that_nobody_answers_is_given_up(station: Station) -> None:
    requester = await station.requester("admission")
    with pytest.raises(NoAnswer, match=r"resource\.resolve"):
        await ask(requester, timeout=0.2)


async def test_a_question_that_nobody_can_hear_is_given_up_at_once(station: Station) -> None:
    requester = await station.requester("admission")
    queue = await station.operator.get_queue(request_queue("executor"), ensure=False)
    await queue.unbind(exchange("admission"), ResourceResolve.wire)
    try:
        with pytest.raises(NoAnswer, match="NO_ROUTE"):
            await ask(requester)
    finally:
        await queue.bind(exchange("admission"), ResourceResolve.wire)


async def test_a_question_that_was_given_up_does_not_wait_for_an_answerer(station: Station) -> None:
    """Answered too late, it could cost a claim."""
    requester = await station.requester("admission")
    with pytest.raises(NoAnswer):
        await ask(requester, timeout=0.2)

    async def gone() -> bool:
        return (await station.counts(request_queue("executor")))[0] == 0

    await wait_until(gone, "the question has expired")
    assert await station.counts(dead_queue("executor")) == (0, 0)


async def test_a_late_answer_is_dropped_and_harms_no_later_question(station: Station) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def late(message: ResourceResolve, cause: Cause) -> Message:
        if message.resource == "C-late":
            begun.set()
            await go.wait()
        return await answer(message, cause)

    spy = await station.spy("executor")
    await station.consumer("executor", Heard(), {ResourceResolve: late})
    requester = await station.requester("admission")
    asking = asyncio.create_task(ask(requester, "C-late", 3.0))
    await begun.wait()
    with pytest.raises(NoAnswer):
        await asking
    go.set()
    await station.take(spy.name, 1)
    assert await ask(requester, "C-1") == "C-1"


@pytest.mark.req("M3")
async def test_an_answer_from_anybody_else_is_ignored(station: Station) -> None:
    requester = await station.requester("admission")
    asking = asyncio.create_task(requester.ask(VERIFY, DecisionVerified, tenant="t", timeout=PATIENT))
    (asked,) = await station.take(request_queue("permission"), 1)
    assert asked.user_id == station.ground.run.user_prefix + "admission"
    await reply(station, asked, "denied", by="executor", user="executor", over="executor")
    await reply(station, asked, "denied", by=OPERATOR, user=None, over="permission")
    await reply(station, asked, "denied", by=OPERATOR, user=OPERATOR, over="permission")
    await reply(station, asked, "valid", by="permission", user="permission", over="permission")
    assert (await asking).verdict == "valid"


@pytest.mark.req("M3")
async def test_bytes_that_are_no_answer_are_ignored(station: Station) -> None:
    requester = await station.requester("admission")
    asking = asyncio.create_task(requester.ask(VERIFY, DecisionVerified, tenant="t", timeout=PATIENT))
    (asked,) = await station.take(request_queue("permission"), 1)
    channel = await station.channel("permission")
    for body in (b"{not json", b"[" + b"1" * 5000 + b"]"):
        await station.say(
            channel, "permission", "permission", asked.reply_to or "", body, correlation_id=asked.correlation_id
        )
    await reply(station, asked, "valid", by="permission", user="permission", over="permission")
    assert (await asking).verdict == "valid"


@pytest.mark.req("M6")
async def test_each_instance_takes_a_reply_queue_of_its_own(station: Station) -> None:
    first, second = [await station.requester("admission") for _ in range(2)]
    await station.consumer("executor", Heard(), {ResourceResolve: answer})
    assert await asyncio.gather(ask(first, "C-1"), ask(second, "C-2")) == ["C-1", "C-2"]
    taken = [(await station.counts(reply_queue("admission", slot)))[1] for slot in range(REPLY_SLOTS)]
    assert taken == [1, 1] + [0] * (REPLY_SLOTS - 2)


@pytest.mark.req("M6")
async def test_an_instance_too_many_says_so_and_a_freed_reply_queue_is_taken(station: Station) -> None:
    instances = [await station.requester("admission") for _ in range(REPLY_SLOTS)]
    with pytest.raises(ConnectionError, match=f"all {REPLY_SLOTS} reply queues of admission are taken"):
        await station.requester("admission")
    await instances[3].stop()
    late = await station.requester("admission")
    await station.consumer("executor", Heard(), {ResourceResolve: answer})
    assert await ask(late) == "C-42"


@pytest.mark.req("M3")
async def test_whoever_may_not_read_the_reply_queues_hears_that_and_not_that_they_are_taken(station: Station) -> None:
    requester = Requester("admission", station.ground.amqp("planner"), user_prefix=station.ground.run.user_prefix)
    with pytest.raises(ChannelAccessRefused, match="access to queue"):
        await requester.start()


@pytest.mark.req("M5")
async def test_an_asker_comes_back_after_its_connection_is_lost(station: Station) -> None:
    wire = await station.wire()
    requester = await station.requester("admission", wire)
    await station.consumer("executor", Heard(), {ResourceResolve: answer})
    assert await ask(requester, "C-1") == "C-1"
    (lost,) = connections(wire)
    wire.cut()
    assert await asks_again(requester) == "C-42"
    assert lost.is_closed
    assert [each.is_closed for each in connections(wire) if each is not lost] == [False]


def connections(wire: Wire) -> list[aio_pika.Connection]:
    """The connections over this line that are in use or were left lying about."""
    every = [each for each in gc.get_objects() if isinstance(each, aio_pika.Connection)]
    return [each for each in every if each.url.port == wire.port]


@pytest.mark.req("M5")
async def test_b41_an_asker_whose_line_falls_silent_comes_back(station: Station) -> None:
    wire = await station.wire(heartbeat=1)
    requester = await station.requester("admission", wire)
    await station.consumer("executor", Heard(), {ResourceResolve: answer})
    wire.fall_silent()
    assert await asks_again(requester) == "C-42"


@pytest.mark.req("M5", "M6")
async def test_an_asker_that_finds_every_reply_queue_taken_waits_for_one(station: Station) -> None:
    wire = await station.wire()
    requester = await station.requester("admission", wire)
    await station.consumer("executor", Heard(), {ResourceResolve: answer})
    wire.cut(open_again=False)

    async def freed() -> bool:
        return (await station.counts(reply_queue("admission", 0)))[1] == 0

    await wait_until(freed, "its reply queue is free")
    others = [await station.requester("admission") for _ in range(REPLY_SLOTS)]
    before = wire.connections
    wire.open = True

    async def tried() -> bool:
        return wire.connections > before

    await wait_until(tried, "it has come back")
    with pytest.raises(NoAnswer):
        await ask(requester, timeout=1.0)
    await others[5].stop()
    assert await asks_again(requester) == "C-42"


@pytest.mark.req("M5")
async def test_b41_an_asker_whose_reply_queue_lost_its_consumer_gets_answers_again(frail: Station) -> None:
    """The queue is deleted and made again, as an operator may do; the connection stays."""
    await frail.requester("ingress")
    await make_again(frail, reply_queue("ingress", 0))

    async def consumed() -> bool:
        counts = [await frail.counts(reply_queue("ingress", slot)) for slot in range(REPLY_SLOTS)]
        return any(consumers for _, consumers in counts)

    await wait_until(consumed, "the asker consumes a reply queue")


async def make_again(frail: Station, name: str) -> None:
    """Delete a queue, and make it again as it was."""
    queue = next(each for each in frail.ground.topology["queues"] if each["name"] == name)
    await frail.operator.queue_delete(name)
    made = await frail.operator.declare_queue(name, durable=True, arguments=queue["arguments"])
    for binding in frail.ground.topology["bindings"]:
        if binding["destination"] == name:
            await made.bind(binding["source"], binding["routing_key"])


@pytest.mark.req("M5", "M6")
async def test_b41_an_asker_whose_reply_queue_went_to_another_instance_takes_another(frail: Station) -> None:
    """The queue has a consumer again, but not the first one's: answers would go past it for ever."""
    await frail.consumer("executor", Heard(), {ResourceResolve: answer})
    first = await frail.requester("admission")
    await make_again(frail, reply_queue("admission", 0))
    second = await frail.requester("admission")
    assert [await asks_again(first), await asks_again(second)] == ["C-42", "C-42"]


async def asks_again(requester: Requester) -> str:
    """The first answer, of as many questions as it takes."""

    async def look() -> str | None:
        try:
            return await ask(requester, timeout=2.0)
        except NoAnswer:
            return None

    return await wait_until(look, "a question is answered")


@pytest.mark.req("M5")
async def test_an_asker_whose_channel_the_broker_has_closed_comes_back(station: Station) -> None:
    """Its connection stays and its reply queue is heard: only what it asks goes nowhere any more."""
    requester = await station.requester("admission")
    await station.consumer("executor", Heard(), {ResourceResolve: answer})
    await (await station.channel(OPERATOR)).exchange_delete(exchange("admission"))
    with pytest.raises(NoAnswer, match="no exchange"):
        await ask(requester, timeout=5.0)
    await station.ground.import_topology()
    assert await asks_again(requester) == "C-42"
