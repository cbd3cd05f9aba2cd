"""The world outside, as the broker shows it: a frontend that hears of turns, an approver application that gets cards.

Their queues are what nobody would empty otherwise; and hearing of an end costs the services nothing, as polling would.
"""

import asyncio
import json
from collections import defaultdict
from typing import Any, Self

import aio_pika
from aio_pika.abc import AbstractConnection, AbstractExchange, AbstractIncomingMessage

from placet.contracts.catalogue import OUTSIDE, exchange, inbox_queue
from placet.contracts.turns import TURN_ENDS
from placet.local.system import System

Json = dict[str, Any]

PATIENCE_SECONDS = 30.0


class Watch:
    """Both outside users on one loop. An async context manager."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._connections: list[AbstractConnection] = []
        self._exchanges: dict[str, AbstractExchange] = {}
        self._seen: dict[tuple[str, str], asyncio.Future[Json]] = defaultdict(
            lambda: asyncio.get_running_loop().create_future()
        )

    async def __aenter__(self) -> Self:
        for user in OUTSIDE:
            connection = await aio_pika.connect(self._system.amqp_url(user))
            self._connections.append(connection)
            channel = await connection.channel(on_return_raises=True)
            await channel.set_qos(prefetch_count=256)
            self._exchanges[user] = await channel.get_exchange(exchange(user), ensure=False)
            queue = await channel.get_queue(inbox_queue(user), ensure=False)
            await queue.consume(self._on_message, no_ack=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections:
            await connection.close()

    async def say(self, user: str, wire: str, message: Json) -> None:
        """Publish a message as one of the outside users."""
        durable = aio_pika.DeliveryMode.PERSISTENT
        said = aio_pika.Message(json.dumps(message).encode(), type=wire, delivery_mode=durable)
        await self._exchanges[user].publish(said, wire)

    @property
    def broker_version(self) -> str:
        """The version that the broker says it has."""
        assert self._connections[0].transport
        return str(self._connections[0].transport.connection.server_properties.get("version"))

    async def card(self, turn_id: str) -> Json:
        """The card of a turn, once it is out. Raises AssertionError when it does not come."""
        return await self._once("card", turn_id)

    async def end(self, turn_id: str) -> Json:
        """The news that a turn is completed. Raises AssertionError when it does not come, or another end does."""
        news = await self._once("end", turn_id)
        assert news["state"] == "completed", news
        return news

    async def _once(self, what: str, turn_id: str) -> Json:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self._seen[what, turn_id]
        except TimeoutError as error:
            raise AssertionError(f"{PATIENCE_SECONDS:.0f} s without the {what} of {turn_id}") from error
        finally:
            self._seen.pop((what, turn_id), None)

    async def _on_message(self, raw: AbstractIncomingMessage) -> None:
        about: Json = json.loads(raw.body)["data"]
        if any(said.get("outcome") not in (None, "succeeded") for said in about.get("messages", ())):
            about |= {"state": "failed"}  # a turn may well be completed without the effect; a cycle is not
        if raw.routing_key == "permission.requested.v1":
            self._saw("card", about)
        elif raw.routing_key == "turn.changed.v1" and about["state"] in TURN_ENDS:
            self._saw("end", about)

    def _saw(self, what: str, about: Json) -> None:
        seen = self._seen[what, about["turn_id"]]
        if not seen.done():
            seen.set_result(about)
