"""Where deliveries go that cannot be read or keep failing: with their reason and original bytes, stopping nothing (M4)."""

import json
import re
from typing import Protocol

from aio_pika.abc import AbstractIncomingMessage

from placet.messaging.publisher import PERSISTENT, Properties, Publisher
from placet.service.database import Database, load_queries

_MEMBER = re.compile(rb'("(?:[^"\\]|\\.)*")(\s*:\s*)"(?:[^"\\]|\\.)*(?:"|$)', re.DOTALL)
"""A member whose value is a string, even one that is cut off."""


def without_token(body: bytes) -> bytes:
    """The body as it came, but for a person's token, which is never stored (P6)."""
    return _MEMBER.sub(lambda found: found[1] + found[2] + b'"[removed]"' if _is_token(found[1]) else found[0], body)


def _is_token(name: bytes) -> bool:
    try:
        return json.loads(name) == "authorization"
    except ValueError:
        return False


def storable(text: str, most: int = 2000) -> str:
    """A text that PostgreSQL and AMQP can carry: NUL and lone surrogates written out, at most so many characters."""
    return text[:most].encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


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
            headers=json.dumps(dict(delivery.headers), default=str).replace("\\u0000", "\\\\0"),
            body=without_token(delivery.body),
            reason=storable(reason),
        )


class BrokerParking:
    """The dead-letter queue of a service that owns no database, reached over the service's own exchange."""

    def __init__(self, service: str, publisher: Publisher) -> None:
        self._key = f"dead.{service}"
        self._publisher = publisher

    async def park(self, delivery: AbstractIncomingMessage, reason: str) -> None:
        """Publish the delivery's bytes to the dead-letter queue. Raises ConnectionError when the broker does not confirm."""
        properties = Properties(
            message_id=delivery.message_id,
            message_type=delivery.type,
            content_type=delivery.content_type,
            delivery_mode=PERSISTENT,
            user_id=self._publisher.user,
            headers={
                "placet-reason": storable(reason),
                "placet-exchange": delivery.exchange or "",
                "placet-routing-key": delivery.routing_key or "",
                "placet-user-id": delivery.user_id or "",
            },
        )
        if error := await self._publisher.send(without_token(delivery.body), properties, self._key):
            raise ConnectionError(error)
