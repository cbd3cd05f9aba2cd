"""Where deliveries go that cannot be read or keep failing: with their reason and original bytes, stopping nothing (M4)."""

import json
from typing import Protocol

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractIncomingMessage

from placet.messaging.publisher import Publisher
from placet.service.database import Database, load_queries


class Parking(Protocol):
    """A place for deliveries that went wrong. Raises when it cannot keep one; the broker's dead-letter queue then does."""

    async def park(self, delivery: AbstractIncomingMessage, reason: str) -> None:
        """Keep the delivery's bytes with the reason."""
        ...


class DatabaseParking:
    """The `parked` table of the service's own database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._park = load_queries("placet.messaging")["park"]

    async def park(self, delivery: AbstractIncomingMessage, reason: str) -> None:
        """Keep the delivery; a second copy of it is not kept again."""
        await self._database.all(
            self._park,
            message_id=delivery.message_id,
            exchange=delivery.exchange or "",
            routing_key=delivery.routing_key or "",
            user_id=delivery.user_id,
            headers=json.dumps(dict(delivery.headers), default=str),
            body=delivery.body,
            reason=reason[:2000],
        )


class BrokerParking:
    """The dead-letter queue of a service that owns no database, reached over the service's own exchange."""

    def __init__(self, service: str, publisher: Publisher) -> None:
        self._key = f"dead.{service}"
        self._publisher = publisher

    async def park(self, delivery: AbstractIncomingMessage, reason: str) -> None:
        """Publish the delivery's bytes to the dead-letter queue. Raises ConnectionError when the broker does not confirm."""
        message = Message(
            delivery.body,
            message_id=delivery.message_id,
            type=delivery.type,
            content_type=delivery.content_type,
            delivery_mode=DeliveryMode.PERSISTENT,
            user_id=self._publisher.user,
            headers={
                "placet-reason": reason[:2000],
                "placet-exchange": delivery.exchange or "",
                "placet-routing-key": delivery.routing_key or "",
                "placet-user-id": delivery.user_id or "",
            },
        )
        if error := await self._publisher.send(message, self._key):
            raise ConnectionError(error)
