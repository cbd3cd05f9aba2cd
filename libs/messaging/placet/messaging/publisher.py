"""Publishing to the service's own exchange: persistent, mandatory, confirmed, on a connection that consumes nothing.

A handler can therefore never be cancelled by a publish that the broker refused. We publish on aiormq's channel, below
aio-pika's message and exchange objects: they cost as much again as the publish itself, and add nothing that we use.
"""

import asyncio
from collections.abc import Sequence
from typing import cast

import aio_pika
from aio_pika.abc import AbstractChannel
from aiormq.channel import Channel
from aiormq.exceptions import AMQPError
from pamqp.commands import Basic, Queue

from placet.contracts.catalogue import exchange
from placet.contracts.message import CONTENT_TYPE
from placet.messaging.line import Line, lost_when_cancelled
from placet.messaging.messages import Promise

CONFIRM_SECONDS = 10.0
"""How long a confirm may take before the message counts as not sent (it may still arrive: consumers are idempotent)."""

ALONE_SECONDS = 3.0
"""How long one message may take that is sent again alone, a connection that comes back included."""

PERSISTENT, TRANSIENT = 2, 1
"""Delivery modes: whether a message outlives a restart of the broker."""

Properties = Basic.Properties
DeclareOk = Queue.DeclareOk


class Publisher:
    """One connection of the service's own broker user, for what it says."""

    setting = "PLACET_AMQP_URL"

    def __init__(self, service: str, url: str) -> None:
        self._service = service
        self._url = url
        self._exchange = exchange(service)
        self._looking: AbstractChannel | None = None

    async def start(self) -> None:
        """Connect. Raises what `Line.opened` raises."""
        self._line = Line(aio_pika.RobustConnection, self._url, f"{self._service} publisher", reconnect_interval=1)
        self._user = self._line.user
        async with self._line.opened():
            self._channel: AbstractChannel = await self._line.connection.channel(on_return_raises=True)
            self._again: AbstractChannel = await self._line.connection.channel(on_return_raises=True)

    async def stop(self) -> None:
        """Close the connection."""
        await self._line.close()

    async def publish(self, promises: Sequence[Promise], *, again: bool = False) -> list[str | None]:
        """Publish all, their confirms pipelined; per promise None, or why it counts as not sent.

        What may be in flight already goes `again`, on another channel: aiormq knows a returned message by its id alone,
        and would take one of two with the same id for sent.
        One message that the broker refuses closes the channel under its neighbours, and may close the connection: what
        fell with it is sent again, each alone, as soon as there is a connection.
        """
        channel = self._again if again else self._channel
        errors = list(await asyncio.gather(*(self._send(channel, each) for each in promises)))
        if len(promises) > 1:
            await self._send_rest_alone(promises, errors)
        return errors

    async def _send_rest_alone(self, promises: Sequence[Promise], errors: list[str | None]) -> None:
        """What the culprit was called when its neighbours fell is a matter of luck, so whatever failed is tried alone."""
        for index, each in enumerate(promises):
            if errors[index] is not None:
                error = errors[index] = await self._send_alone(each)
                if error and error.startswith("TimeoutError"):
                    return  # the broker takes nothing now

    async def _send_alone(self, each: Promise) -> str | None:
        try:
            with lost_when_cancelled():
                async with asyncio.timeout(ALONE_SECONDS):
                    await self._line.connection.ready()
                    async with self._line.connection.channel(on_return_raises=True) as channel:
                        return await self._send(channel, each)
        except (AMQPError, RuntimeError, OSError, TimeoutError) as error:
            return _named(error)

    async def _send(self, channel: AbstractChannel, each: Promise) -> str | None:
        properties = Properties(
            message_id=each.message_id,
            message_type=each.wire,
            content_type=CONTENT_TYPE,
            delivery_mode=PERSISTENT,
            user_id=self._user,
            headers={"traceparent": each.traceparent} if each.traceparent else None,
        )
        try:
            return await self.send(each.body, properties, each.wire, channel)
        except ValueError as error:
            return _named(error)  # its own fault: its neighbours are sent

    async def send(
        self, body: bytes, properties: Properties, key: str, channel: AbstractChannel | None = None
    ) -> str | None:
        """Publish one message that is not a promise (a parked one, a reply); None, or why it counts as not sent.

        Raises ValueError when it has no message id (B39): the client library would make one up, another for each copy.
        """
        if not properties.message_id:
            raise ValueError(f"{key} has no message id")
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                await publish_confirmed(channel or self._channel, self._exchange, key, body, properties)
        except (AMQPError, RuntimeError, OSError, TimeoutError) as error:
            return _named(error)
        return None

    async def passive(self, queue: str) -> DeclareOk:
        """Look at a queue without declaring it, on a channel that does nothing else: one that is not there closes it.

        It stays open from look to look: aio-pika leaves something of each channel in its connection for good.
        Raises what `look_at` raises.
        """
        with lost_when_cancelled():
            async with asyncio.timeout(CONFIRM_SECONDS):
                if self._looking is None or self._looking.is_closed:
                    self._looking = await self._line.connection.channel()
        return await look_at(queue, self._looking)

    @property
    def user(self) -> str:
        """The broker user that this service is: the broker itself vouches for it in every message."""
        return self._user


async def publish_confirmed(channel: AbstractChannel, to: str, key: str, body: bytes, properties: Properties) -> None:
    """Publish one message to an exchange, mandatory, and wait for its confirm.

    Raises what aiormq raises when the broker refuses or returns it, and ConnectionError when the connection is lost.
    """
    with lost_when_cancelled():
        underlay = cast(Channel, await channel.get_underlay_channel())
        await underlay.basic_publish(  # the confirm is waited for, so not also for the socket
            body, exchange=to, routing_key=key, properties=properties, mandatory=True, wait=False
        )


async def look_at(queue: str, channel: AbstractChannel) -> DeclareOk:
    """Look at a queue without declaring it; one that is not there closes the channel.

    Raises what aiormq raises when the queue or the broker is away, ConnectionError when the connection is lost, and
    TimeoutError when the broker says nothing.
    """
    with lost_when_cancelled():
        async with asyncio.timeout(CONFIRM_SECONDS):
            return await (await channel.get_underlay_channel()).queue_declare(queue, passive=True)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
