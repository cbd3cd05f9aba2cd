"""Consuming by FastStream: every delivery is trusted by its exchange and its broker-validated user, read strictly,
handled inside one span, and acknowledged only when what it caused is durable.

Triage: what waiting can mend backs off in place; anything else is tried a few times and parked; nothing is lost.
"""

import asyncio
import itertools
import random
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from aio_pika.abc import AbstractIncomingMessage
from aiormq.exceptions import AMQPError
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage, RabbitQueue

from placet.contracts.catalogue import ROUTES, Route, exchange, heard_by, inbox_queue, request_queue
from placet.contracts.message import CONTENT_TYPE, Envelope, Message, Unreadable, decode
from placet.messaging.line import CONNECT_SECONDS, lost_when_cancelled
from placet.messaging.messages import Cause, promise
from placet.messaging.parking import Parking, Stall, storable
from placet.messaging.publisher import TRANSIENT, Properties, Publisher
from placet.messaging.requester import NoAnswer
from placet.messaging.watch import watch_consumers
from placet.service.crash import crash_point, handling
from placet.service.database import DATABASE_AWAY
from placet.service.logs import first_line
from placet.service.settings import ServiceSettings
from placet.telemetry import process_span

log = structlog.get_logger()

M = TypeVar("M", bound=Message)
Handler = Callable[[M, Cause], Awaitable[Message | None]]
GivenUp = Callable[[M, Cause], Stall]

WAITING_HELPS = (*DATABASE_AWAY, AMQPError, NoAnswer)
ATTEMPTS = 3
"""How often a delivery whose handler raises is tried before it is parked."""

RESUMES = {"decision.submitted.v1", "decision.relayed.v1"}
"""Messages that resume what was suspended, perhaps weeks later: a new trace, linked."""

REPLY_MILLISECONDS = "30000"
"""How long a reply may wait for an asker who has gone; as text, as AMQP has it."""

_REPLY_KEY = re.compile(r"^reply\.([a-z]+)\.\d+$")
_IDS = {"turn_id": "placet.turn.id", "tool_call_id": "placet.tool_call.id", "operation_id": "placet.operation.id"}


class Consumer:
    """The queues of one service, and a plain function for each message that it hears."""

    setting = "PLACET_AMQP_URL"

    def __init__(
        self,
        service: str,
        url: str,
        *,
        parking: Parking,
        publisher: Publisher,
        prefetch: int,
        user_prefix: str,
    ) -> None:
        self._service = service
        self._parking, self._publisher = parking, publisher
        self._prefetch, self._user_prefix = prefetch, user_prefix
        self._handlers: dict[str, Handler[Any]] = {}
        self._given_up: dict[str, GivenUp[Any]] = {}
        self._queues: list[str] = []
        self._broker = RabbitBroker(
            url,
            timeout=CONNECT_SECONDS,
            reconnect_interval=1,
            graceful_timeout=20,
            logger=None,
            apply_types=False,
            decoder=_whole,
        )

    @classmethod
    def of(cls, service: str, settings: ServiceSettings, parking: Parking, publisher: Publisher) -> "Consumer":
        """The consumer of a service with these settings."""
        return cls(
            service,
            settings.amqp_url,
            parking=parking,
            publisher=publisher,
            prefetch=settings.prefetch,
            user_prefix=settings.amqp_user_prefix,
        )

    def on(self, kind: type[M], handler: Handler[M], given_up: GivenUp[M] | None = None) -> None:
        """Let `handler` work on every message of this kind. It may be called again for a message that it has handled.

        `given_up` is asked what stands still when the handler keeps failing and the message is parked.
        """
        self._handlers[kind.wire] = handler
        if given_up:
            self._given_up[kind.wire] = given_up

    async def start(self) -> None:
        """Consume. Raises LookupError when a message that the catalogue sends here has no handler."""
        events, requests = heard_by(self._service), heard_by(self._service, "request")
        if missing := sorted((events.keys() | requests.keys()) - self._handlers.keys()):
            raise LookupError(f"{self._service} has no handler for {', '.join(missing)}")
        self._subscribe(inbox_queue(self._service), events)
        if requests:
            self._subscribe(request_queue(self._service), requests)
        await self._connect()
        self.running = asyncio.create_task(watch_consumers(self._queues, self._publisher))

    async def _connect(self) -> None:
        """An attempt that is cut short tries again for ever, and no process ends for it: so it is waited for."""
        starting = asyncio.create_task(self._broker.start())
        try:
            with lost_when_cancelled():
                await asyncio.shield(starting)
        except BaseException:
            await asyncio.wait({starting})
            await self._broker.stop()
            raise

    async def stop(self) -> None:
        """Finish the deliveries under way, and leave."""
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self._broker.stop()

    def _subscribe(self, queue: str, routes: dict[str, Route]) -> None:
        self._queues.append(queue)
        known = {wire: route.message for wire, route in routes.items()}

        async def consume(message: RabbitMessage) -> None:
            try:
                await self._consume(message.raw_message, queue, known)
            except Exception as error:
                log.error("message.rejected", action="message.rejected", queue=queue, error=first_line(error))
                raise  # FastStream rejects it, and the broker's dead-letter queue keeps it

        self._broker.subscriber(
            RabbitQueue(queue, declare=False),
            channel=Channel(prefetch_count=self._prefetch),
            ack_policy=AckPolicy.REJECT_ON_ERROR,
            no_reply=True,
        )(consume)

    async def _consume(self, raw: AbstractIncomingMessage, queue: str, known: dict[str, type[Message]]) -> None:
        try:
            envelope = self._open(raw, known)
        except Unreadable as why:
            await self._park(raw, str(why))
            return
        wire = envelope.message.wire
        if raw.redelivered and ROUTES[wire].kind == "request":
            return  # whoever asked has asked again, or given up
        handling(f"{self._service}:{wire}", envelope.tenant)
        with process_span(
            wire,
            source=raw.exchange or "",
            queue=queue,
            message_id=envelope.id,
            traceparent=envelope.traceparent,
            resumes=wire in RESUMES,
            redelivered=bool(raw.redelivered),
            ids=_ids(envelope.message),
        ):
            await self._handle(raw, envelope)
        crash_point("before_ack")

    def _open(self, raw: AbstractIncomingMessage, known: dict[str, type[Message]]) -> Envelope[Message]:
        envelope = decode(raw.body, known)
        publisher = ROUTES[envelope.message.wire].publisher
        if raw.exchange != exchange(publisher):
            raise Unreadable(f"{envelope.message.wire} came over {raw.exchange!r}, not over {exchange(publisher)!r}")
        if raw.user_id != self._user_prefix + publisher:
            raise Unreadable(f"{envelope.message.wire} was sent by the user {raw.user_id!r}, not by {publisher!r}")
        return envelope

    async def _handle(self, raw: AbstractIncomingMessage, envelope: Envelope[Message]) -> None:
        wire = envelope.message.wire
        handler = self._handlers[wire]
        cause = Cause(self._service, envelope.id, envelope.tenant, envelope.conversation, envelope.traceparent)
        waits, failures = 0, 0
        while True:
            try:
                answer = await handler(envelope.message, cause)
                if answer is not None:
                    await self._reply(raw, answer, cause)
                return
            except WAITING_HELPS as error:
                waits += 1
                if ROUTES[wire].kind == "request":
                    log.warning("request.unanswered", action="request.unanswered", wire=wire, error=first_line(error))
                    return  # who asked asks again; holding the question would only answer it too late
                await self._back_off(wire, waits, error)
            except Exception as error:
                failures, reason = failures + 1, first_line(error)
                log.error("message.failed", action="message.failed", wire=wire, attempt=failures, error=reason)
                if failures >= ATTEMPTS:
                    given_up = self._given_up.get(wire)
                    await self._park(raw, reason, given_up(envelope.message, cause) if given_up else None)
                    return
                await asyncio.sleep(0.2 * 2**failures)

    async def _back_off(self, wire: str, waits: int, error: Exception) -> None:
        """The delivery is held while we wait: prefetch is the back-pressure, and its neighbours lose no redelivery count."""
        log.warning("message.waits", action="message.waits", wire=wire, waits=waits, error=first_line(error))
        await asyncio.sleep(min(10.0, 0.2 * 2 ** min(waits, 6)) * random.uniform(0.8, 1.2))  # noqa: S311  jitter, no secret

    async def _reply(self, raw: AbstractIncomingMessage, answer: Message, cause: Cause) -> None:
        """Answer only on our own exchange, and only to a reply queue of the service that asked."""
        found = _REPLY_KEY.match(raw.reply_to or "")
        if found is None or found[1] != (raw.user_id or "").removeprefix(self._user_prefix):
            return
        said = promise(cause.service, answer, tenant=cause.tenant, conversation=cause.conversation, cause=cause.message_id)
        properties = Properties(
            message_id=said.message_id,
            message_type=said.wire,
            content_type=CONTENT_TYPE,
            correlation_id=raw.correlation_id,
            delivery_mode=TRANSIENT,
            user_id=self._publisher.user,
            expiration=REPLY_MILLISECONDS,
        )
        crash_point("before_reply")
        if error := await self._publisher.send(said.body, properties, found[0]):
            log.warning("reply.unsent", action="reply.unsent", wire=answer.wire, error=error)

    async def _park(self, raw: AbstractIncomingMessage, reason: str, stall: Stall | None = None) -> None:
        """Raising here rejects the delivery, and the broker's dead-letter queue keeps it."""
        for waits in itertools.count(1):
            try:
                await self._parking.park(raw, reason, stall)
                break
            except WAITING_HELPS as error:
                await self._back_off(raw.routing_key or "", waits, error)
        log.error("message.parked", action="message.parked", routing_key=raw.routing_key, reason=storable(reason))


async def _whole(message: RabbitMessage) -> RabbitMessage:
    """The handler gets the delivery itself: reading it is our own, stricter, work."""
    return message


def _ids(message: Message) -> dict[str, str]:
    return {name: value for field, name in _IDS.items() if (value := getattr(message, field, None))}
