"""Request and reply without a default exchange: the answerer says its reply on its own exchange, to a reply queue of ours.

Reply queues are declared ahead (catalogue.REPLY_SLOTS); an instance takes one that no other instance consumes. Many
questions are in flight at once. A question that nobody answers in time raises; whoever asked it asks again.
"""

import asyncio
from typing import Any, TypeVar

import aio_pika
import structlog
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.connection import make_url
from aiormq.exceptions import AMQPError, ChannelAccessRefused, ChannelLockedResource

from placet.contracts.catalogue import REPLY_SLOTS, ROUTES, exchange, reply_key, reply_queue
from placet.contracts.ids import new_id
from placet.contracts.message import CONTENT_TYPE, Message, Unreadable, decode
from placet.messaging.messages import promise
from placet.messaging.publisher import PERSISTENT, TRANSIENT, Properties

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
        """Connect and take a reply queue. Raises what aio-pika raises when the broker does not let us in."""
        await self._connect()
        self._keeper = asyncio.create_task(self._keep_connected())

    async def stop(self) -> None:
        """Close the connection; questions that are open raise NoAnswer when their time is over."""
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)
        await self._connection.close()

    async def ask(
        self, question: Message, reply: type[R], *, tenant: str, conversation: str = "", timeout: float = 5.0
    ) -> R:
        """Ask, and wait for the reply for `timeout` seconds at most.

        Raises NoAnswer when it does not come, NotAsked when the broker did not take the question, and TypeError when the
        reply is of another kind.
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
            user_id=self._user,
            expiration=None if durable else str(int(timeout * 1000)),
            delivery_mode=PERSISTENT if durable else TRANSIENT,
            headers={"traceparent": said.traceparent} if said.traceparent else None,
        )
        underlay = await self._channel.get_underlay_channel()
        await underlay.basic_publish(
            said.body, exchange=exchange(self._service), routing_key=question.wire, properties=properties, mandatory=True
        )

    async def _connect(self) -> None:
        """An attempt that fails is closed here: what `aio_pika.connect` leaves of one closes itself when it is collected."""
        self._connection: AbstractConnection = aio_pika.Connection(
            make_url(self._url), client_properties={"connection_name": f"{self._service} requester"}
        )
        try:
            await self._connection.connect()
            self._user = self._connection.url.user or ""
            self._lost = asyncio.Event()
            self._connection.close_callbacks.add(self._on_close)
            self._channel: AbstractChannel = await self._connection.channel(on_return_raises=True)
            self._slot = await self._take_slot()
        except BaseException:
            await self._connection.close()
            raise
        self._ready.set()

    def _on_close(self, _connection: Any, _error: BaseException | None) -> None:
        self._lost.set()

    async def _take_slot(self) -> int:
        for slot in range(REPLY_SLOTS):
            channel = await self._connection.channel()
            try:
                queue = await channel.get_queue(reply_queue(self._service, slot), ensure=False)
                await queue.consume(self._on_reply, no_ack=True, exclusive=True)
            except (ChannelAccessRefused, ChannelLockedResource) as refused:
                if "exclusive use" not in str(refused):
                    raise
                continue
            return slot
        raise ConnectionError(f"all {REPLY_SLOTS} reply queues of {self._service} are taken by other instances")

    async def _keep_connected(self) -> None:
        while True:
            while not await _set_within(self._lost, WATCH_SECONDS):
                await self._watch_reply_queue()
            self._ready.clear()
            while not self._ready.is_set():
                try:
                    await self._connect()
                except (AMQPError, OSError, RuntimeError) as error:
                    log.warning("requester.reconnects", action="requester.reconnects", error=str(error))
                    await asyncio.sleep(1)

    async def _watch_reply_queue(self) -> None:
        """A reply queue that was deleted, or lost its consumer, says nothing of it (B41): we begin afresh."""
        try:
            async with asyncio.timeout(WATCH_SECONDS), self._connection.channel() as channel:
                queue = await channel.declare_queue(reply_queue(self._service, self._slot), passive=True)
                if queue.declaration_result.consumer_count:
                    return
        except (AMQPError, OSError, RuntimeError, TimeoutError) as error:
            log.warning("requester.deaf", action="requester.deaf", error=str(error))
        await self._connection.close()

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


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


_REPLIES: dict[str, type[Message]] = {route.wire: route.message for route in ROUTES.values() if route.kind == "reply"}
