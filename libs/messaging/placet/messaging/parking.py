"""Where deliveries go that cannot be read or keep failing: with their reason and original bytes, stopping nothing (M4)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from aio_pika.abc import AbstractIncomingMessage

from placet.contracts.ids import new_id
from placet.messaging.messages import Promise
from placet.messaging.outbox import Outbox
from placet.messaging.properties import NOTE
from placet.messaging.publisher import PERSISTENT, Properties, Publisher
from placet.service.database import Database, load_queries

_STRING = re.compile(rb'("(?:[^"\\]|\\.)*+"?)(\s*+:)?+', re.DOTALL)
"""A string, even one that is cut off, and the colon that makes it a name. It never looks back: bodies may be large."""

_MEMBER = re.compile(rb'("authorization"\s*+:\s*+)"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""The member, wherever it stands: one quote too many turns the inside and the outside of strings round."""

_DOTTED = re.compile(rb"(?<![\w-])[\w-]++\.[\w-]++\.[\w-]*+")
"""What has the form of a signed token (RFC 7515); its JSON begins with `eyJ`."""


def without_token(body: bytes) -> bytes:
    """The body as it came, but for a person's token, which is never stored (P6)."""
    secret = False

    def keep(found: re.Match[bytes]) -> bytes:
        nonlocal secret
        string, name = found[1], bool(found[2])
        removed, secret = secret and not name, name and _is_token(string)
        return b'"[removed]"' if removed else found[0]

    body = _MEMBER.sub(rb'\1"[removed]"', _STRING.sub(keep, body))
    return _DOTTED.sub(lambda found: b"[removed]" if b"eyJ" in found[0] else found[0], body)


def _is_token(name: bytes) -> bool:
    try:
        return json.loads(name) == "authorization"
    except ValueError:
        return False


def storable(text: str, most: int = 2000) -> str:
    """A text that PostgreSQL and AMQP can carry: NUL and lone surrogates written out, at most so many characters."""
    return text[:most].encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _plain(value: Any) -> Any:
    """A header's value as jsonb takes it: what is neither a truth, a whole number nor a collection becomes text."""
    if isinstance(value, Mapping):
        return {storable(str(name)): _plain(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("list[Any]", value)]
    return value if isinstance(value, bool | int | None) else storable(str(value))


@dataclass(frozen=True, slots=True)
class Stall:
    """A turn that stands still because a message of it kept failing which its consumer had believed."""

    tenant: str
    turn_id: str
    stall_id: str
    told: Promise


@dataclass(frozen=True, slots=True)
class Kept:
    """A message that stalls a turn, as it is parked."""

    stall_id: str
    wire: str
    body: bytes
    attempts: int


class Parking(Protocol):
    """A place for deliveries that went wrong. Raises when it cannot keep one; the broker's dead-letter queue then does."""

    async def park(self, delivery: AbstractIncomingMessage, reason: str, stall: Stall | None = None) -> None:
        """Keep the delivery's bytes with the reason, and say what stands still."""
        ...


class DatabaseParking:
    """The `parked` table of the service's own database."""

    def __init__(self, database: Database, outbox: Outbox) -> None:
        self._database, self._outbox = database, outbox
        self._sql = load_queries("placet.messaging")

    async def park(self, delivery: AbstractIncomingMessage, reason: str, stall: Stall | None = None) -> None:
        """Keep the delivery; a second copy of it is not kept again. What stalls a turn is kept byte for byte."""
        await self._outbox.commit(
            self._sql["park"],
            [stall.told] if stall else [],
            message_id=delivery.message_id,
            exchange=delivery.exchange or "",
            routing_key=delivery.routing_key or "",
            user_id=delivery.user_id,
            headers=json.dumps(_plain(delivery.headers)),
            body=delivery.body if stall else without_token(delivery.body),
            reason=storable(reason),
            tenant=stall.tenant if stall else None,
            turn_id=stall.turn_id if stall else None,
            stall_id=stall.stall_id if stall else None,
        )

    async def of_turn(self, tenant: str, turn_id: str) -> list[Kept]:
        """What a turn waits for, in the order in which it failed."""
        rows = await self._database.all(self._sql["parked_of_turn"], tenant=tenant, turn_id=turn_id)
        return [Kept(row["stall_id"], row["routing_key"], row["body"], row["attempts"]) for row in rows]

    async def out_of_the_way(self, tenant: str, stall_id: str, told: Promise) -> None:
        """A message that stalled a turn was handled, or is not kept any more; say so."""
        await self._outbox.commit(self._sql["unpark"], [told], tenant=tenant, stall_id=stall_id)

    async def failed_again(self, tenant: str, kept: Kept, reason: str, told: Promise) -> None:
        """It was tried again in vain; say so."""
        values = {"stall_id": kept.stall_id, "attempts": kept.attempts, "reason": storable(reason)}
        await self._outbox.commit(self._sql["park_again"], [told], tenant=tenant, **values)


class BrokerParking:
    """The dead-letter queue of a service that owns no database, reached over the service's own exchange."""

    def __init__(self, service: str, publisher: Publisher) -> None:
        self._key = f"dead.{service}"
        self._publisher = publisher

    async def park(self, delivery: AbstractIncomingMessage, reason: str, stall: Stall | None = None) -> None:
        """Publish the delivery's bytes to the dead-letter queue. Raises RuntimeError when the broker does not confirm.

        Nothing is waited for then: rejected, the delivery gets to the same queue without us. One that came without an id
        gets one, for we say nothing without.
        """
        properties = Properties(
            message_id=delivery.message_id or new_id("msg"),
            message_type=delivery.type,
            content_type=delivery.content_type,
            delivery_mode=PERSISTENT,
            user_id=self._publisher.user,
            headers={
                "placet-reason": storable(reason),
                "placet-exchange": delivery.exchange or "",
                "placet-routing-key": delivery.routing_key or "",
                "placet-user-id": delivery.user_id or "",
                NOTE: storable(str(delivery.headers.get(NOTE, ""))),
            },
        )
        if error := await self._publisher.send(without_token(delivery.body), properties, self._key):
            raise RuntimeError(error)
