"""Publishing to the service's own exchange: persistent, mandatory, confirmed, on a connection that consumes nothing.

A handler can therefore never be cancelled by a publish that the broker refused. We publish on aiormq's channel, below
aio-pika's message and exchange objects: they cost as much again as the publish itself, and add nothing that we use.
"""

import asyncio
from collections.abc import Sequence
from typing import cast

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractQueue, AbstractRobustConnection
from aiormq.channel import Channel
from aiormq.exceptions import AMQPError
from pamqp.commands import Basic

from placet.contracts.catalogue import exchange
from placet.contracts.message import CONTENT_TYPE
from placet.messaging.messages import Promise

CONFIRM_SECONDS = 10.0
"""How long a confirm may take before the message counts as not sent (it may still arrive: consumers are idempotent)."""

ALONE_SECONDS = 3.0
"""How long one message may take that is sent again alone, a connection that comes back included."""

PERSISTENT, TRANSIENT = 2, 1
"""Delivery modes: whether a message outlives a restart of the broker."""

Properties = Basic.Properties


class Publisher:
    """One connection of the service's own broker user, for what it says."""

    setting = "PLACET_AMQP_URL"

    def __init__(self, service: str, url: str) -> None:
        self._service = service
        self._url = url
        self._exchange = exchange(service)

    async def start(self) -> None:
        """Connect. Raises what aio-pika raises when the broker does not let us in."""
        self._connection: AbstractRobustConnection = await aio_pika.connect_robust(
            self._url, reconnect_interval=1, client_properties={"connection_name": f"{self._service} publisher"}
        )
        self._user = self._connection.url.user or ""
        self._channel: AbstractChannel = await self._connection.channel(on_return_raises=True)
        self._again: AbstractChannel = await self._connection.channel(on_return_raises=True)

    async def stop(self) -> None:
        """Close the connection."""
        await self._connection.close()

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
            async with asyncio.timeout(ALONE_SECONDS):
                await self._connection.ready()
                async with self._connection.channel(on_return_raises=True) as channel:
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
        return await self.send(each.body, properties, each.wire, channel)

    async def send(
        self, body: bytes, properties: Properties, key: str, channel: AbstractChannel | None = None
    ) -> str | None:
        """Publish one message that is not a promise (a parked one, a reply); None, or why it counts as not sent."""
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                underlay = cast(Channel, await (channel or self._channel).get_underlay_channel())
                await underlay.basic_publish(  # the confirm is waited for, so not also for the socket
                    body, exchange=self._exchange, routing_key=key, properties=properties, mandatory=True, wait=False
                )
        except (AMQPError, RuntimeError, OSError, TimeoutError) as error:
            return _named(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return "connection lost"  # aiormq cancels the publish itself when the heartbeat is lost
        return None

    async def passive(self, queue: str) -> AbstractQueue:
        """Look at a queue without declaring it, on a channel of its own: one that is not there closes the channel.

        Raises what aio-pika raises when the queue or the broker is away.
        """
        async with asyncio.timeout(CONFIRM_SECONDS), self._connection.channel() as channel:
            return await channel.declare_queue(queue, passive=True)

    @property
    def user(self) -> str:
        """The broker user that this service is: the broker itself vouches for it in every message."""
        return self._user


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
