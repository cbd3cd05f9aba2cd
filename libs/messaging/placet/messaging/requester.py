"""Request and reply without a default exchange: the answerer says its reply on its own exchange, to a reply queue of ours.

Reply queues are declared ahead (catalogue.REPLY_SLOTS); an instance takes one that no other instance consumes. Many
questions are in flight at once. A question that nobody answers in time raises; whoever asked it asks again.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import aio_pika
import structlog
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aiormq.exceptions import AMQPError, ChannelAccessRefused, ChannelLockedResource

from placet.contracts.catalogue import REPLY_SLOTS, ROUTES, exchange, reply_key, reply_queue
from placet.contracts.ids import new_id
from placet.contracts.message import CONTENT_TYPE, Message, Unreadable, decode
from placet.messaging.line import Line
from placet.messaging.messages import promise
from placet.messaging.publisher import PERSISTENT, TRANSIENT, Properties, look_at, publish_confirmed
from placet.service.crash import crash_point
from placet.service.logs import first_line
from placet.service.waiting import set_within

log = structlog.get_logger()

R = TypeVar("R", bound=Message)


WATCH_SECONDS = 5.0


class NoAnswer(Exception):
    """Nobody answered in time. Nothing is known about whether the question was heard."""


class NotAsked(NoAnswer):
    """The broker did not confirm the question: it may never be heard."""


class Requester:
    """Asks other services, over one connection and one reply queue."""

    setting = "PLACET_AMQP_URL"

    def __init__(self, service: str, url: str, *, user_prefix: str) -> None:
        self._service, self._url, self._user_prefix = service, url, user_prefix
        self._open: dict[str, asyncio.Future[Message]] = {}
        self._ready = asyncio.Event()

    async def start(self) -> None:
        """Connect and take a reply queue. Raises what `Line.opened` raises, and ConnectionError when all are taken."""
        await self._connect()
        self.running = asyncio.create_task(self._keep_connected())

    async def stop(self) -> None:
        """Close the connection; questions that are open raise NoAnswer when their time is over."""
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self._line.close()

    async def ask(
        self, question: Message, reply: type[R], *, tenant: str, conversation: str = "", timeout: float = 5.0
    ) -> R:
        """Ask, and wait for the reply for `timeout` seconds at most.

        Raises NoAnswer when it does not come, NotAsked when the broker did not take the question, TooLarge when it fits into
        no message, and TypeError when the reply is of another kind.
        """
        correlation = new_id("ask")
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._open[correlation] = answer
        asked = False
        try:
            async with asyncio.timeout(timeout):
                await self._ready.wait()
                await self._send(question, correlation, tenant, conversation, timeout)
                asked = True
                found = await answer
        except (TimeoutError, AMQPError, OSError, RuntimeError) as error:
            why = f"{question.wire}: {type(error).__name__} {error}"
            raise (NoAnswer(why) if asked else NotAsked(why)) from error
        finally:
            del self._open[correlation]
        if not isinstance(found, reply):
            raise TypeError(f"{question.wire} was answered by {found.wire}")
        return found

    async def _send(self, question: Message, correlation: str, tenant: str, conversation: str, timeout: float) -> None:
        said = promise(self._service, question, tenant=tenant, conversation=conversation)
        durable = ROUTES[question.wire].kind == "event"
        properties = Properties(
            message_id=said.message_id,
            message_type=said.wire,
            content_type=CONTENT_TYPE,
            correlation_id=correlation,
            reply_to=reply_key(self._service, self._slot),
            user_id=self._line.user,
            expiration=None if durable else str(int(timeout * 1000)),
            delivery_mode=PERSISTENT if durable else TRANSIENT,
            headers={"traceparent": said.traceparent} if said.traceparent else None,
        )
        await publish_confirmed(self._channel, exchange(self._service), question.wire, said.body, properties)
        crash_point("after_question")

    async def _connect(self) -> None:
        self._line = Line(aio_pika.Connection, self._url, f"{self._service} requester")
        lost = self._lost = asyncio.Event()

        def gone(*_: Any) -> None:
            lost.set()

        async with self._line.opened():
            connection = self._line.connection
            connection.close_callbacks.add(gone)
            self._channel: AbstractChannel = await connection.channel(on_return_raises=True)
            self._channel.close_callbacks.add(gone)
            self._looking: AbstractChannel = await connection.channel()
            self._slot = await self._take_slot(gone)
        self._ready.set()

    async def _take_slot(self, gone: Callable[..., None]) -> int:
        for slot in range(REPLY_SLOTS):
            channel = await self._line.connection.channel()
            try:
                queue = await channel.get_queue(reply_queue(self._service, slot), ensure=False)
                await queue.consume(self._on_reply, no_ack=True, exclusive=True)
            except (ChannelAccessRefused, ChannelLockedResource) as refused:
                if "exclusive use" not in str(refused):
                    raise
                continue
            channel.close_callbacks.add(gone)
            # Told at once: before the next look another instance may have taken our reply queue, and be found there.
            (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(gone)
            return slot
        raise ConnectionError(f"all {REPLY_SLOTS} reply queues of {self._service} are taken by other instances")

    async def _keep_connected(self) -> None:
        while True:
            while not await set_within(self._lost, WATCH_SECONDS):
                await self._watch_reply_queue()
            self._ready.clear()
            await self._line.close()  # also when it is lost: aio-pika counts it as open until we say so
            while not self._ready.is_set():
                try:
                    await self._connect()
                except (AMQPError, OSError, RuntimeError) as error:
                    log.warning("requester.reconnects", action="requester.reconnects", error=first_line(error))
                    await asyncio.sleep(1)

    async def _watch_reply_queue(self) -> None:
        """A reply queue that was deleted, or lost its consumer, may say nothing of it (B41): we begin afresh."""
        try:
            found = await look_at(reply_queue(self._service, self._slot), self._looking)
            if found.consumer_count:
                return
        except (AMQPError, OSError, RuntimeError, TimeoutError) as error:
            log.warning("requester.deaf", action="requester.deaf", error=first_line(error))
        self._lost.set()

    async def _on_reply(self, raw: AbstractIncomingMessage) -> None:
        waiting = self._open.get(raw.correlation_id or "")
        if waiting is None or waiting.done():
            return  # the answer to a question that was given up
        try:
            reply = decode(raw.body, _REPLIES)
        except Unreadable as why:
            log.error("reply.unreadable", action="reply.unreadable", reason=str(why))
            return
        publisher = ROUTES[reply.message.wire].publisher
        if raw.exchange == exchange(publisher) and raw.user_id == self._user_prefix + publisher:
            waiting.set_result(reply.message)
        else:
            log.warning("reply.untrusted", action="reply.untrusted", exchange=raw.exchange, user=raw.user_id)


_REPLIES: dict[str, type[Message]] = {route.wire: route.message for route in ROUTES.values() if route.kind == "reply"}
