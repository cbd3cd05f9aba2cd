"""The base of every message, and the envelope that carries it (CloudEvents 1.0, structured JSON).

An envelope is written by hand around the message's own JSON: it is the hottest code of the system, and its shape is fixed.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from placet.canonical import UnsafeJson, strict_loads
from placet.contracts.ids import new_id

CONTENT_TYPE = "application/cloudevents+json"
_SOURCE = "/placet/"
MAX_BYTES = 256 * 1024
MAX_DEPTH = 48
"""Wider than what any edge lets in (64 KiB and a depth of 32, escaped once more on the way), so that whatever came in can
also be passed on."""


class Message(BaseModel):
    """Something one service says. `wire` is its type and its routing key: noun, past participle, version (M1)."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    wire: ClassVar[str] = ""


class Event(Message):
    """A fact. Readers ignore fields that they do not know."""


class Command(Message):
    """A wish. Closed: a field that is not known is refused, for it might change the meaning (B45)."""

    model_config = ConfigDict(frozen=True, extra="forbid")


M = TypeVar("M", bound=Message)


class Unreadable(Exception):
    """The bytes are not an envelope of a known message; the text says where and why."""


class TooLarge(ValueError):
    """The envelope of a message has more than MAX_BYTES; the text says whose and how many."""


@dataclass(frozen=True, slots=True)
class Envelope(Generic[M]):
    """A message with what must travel beside it. `tenant` and `conversation` are trusted as far as the publisher is."""

    id: str
    source: str
    time: str
    tenant: str
    conversation: str
    cause: str
    traceparent: str
    message: M

    def encode(self) -> bytes:
        """The CloudEvents JSON of the envelope.

        Raises TooLarge when it has more than MAX_BYTES, which every reader refuses.
        """
        attributes = {
            "specversion": "1.0",
            "id": self.id,
            "source": _SOURCE + self.source,
            "type": self.message.wire,
            "time": self.time,
            "datacontenttype": "application/json",
            "dataschema": schema_id(self.message.wire),
            "tenantid": self.tenant,
            "conversationid": self.conversation,
            "causationid": self.cause,
            "traceparent": self.traceparent,
        }
        kept = {name: value for name, value in attributes.items() if value}
        head = json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()
        body = head[:-1] + b',"data":' + self.message.model_dump_json().encode() + b"}"
        if len(body) > MAX_BYTES:
            raise TooLarge(f"{self.message.wire} has {len(body)} bytes, more than {MAX_BYTES}")
        return body


def schema_id(name: str) -> str:
    """The `$id` of a schema, which is the `dataschema` of its envelopes."""
    return f"urn:placet:schema:{name}"


def wrap(message: M, *, source: str, tenant: str, conversation: str, cause: str, traceparent: str) -> Envelope[M]:
    """The envelope of a message that `source` says now."""
    now = datetime.now(UTC).isoformat()
    return Envelope(new_id("msg"), source, now, tenant, conversation, cause, traceparent, message)


def decode(body: bytes, known: dict[str, type[M]]) -> Envelope[M]:
    """Read an envelope strictly: duplicate keys, NaN, unsafe numbers, lone surrogates and NUL are refused (A3).

    Raises Unreadable with the reason; an unknown type is unreadable, never empty.
    """
    try:
        event = strict_loads(body, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    except UnsafeJson as unsafe:
        raise Unreadable(f"{unsafe.code} at {unsafe.path}") from unsafe
    if not isinstance(event, dict):
        raise Unreadable("the body is not a JSON object")
    return _envelope(cast("dict[str, Any]", event), known)


def _envelope(event: dict[str, Any], known: dict[str, type[M]]) -> Envelope[M]:
    if event.get("specversion") != "1.0":
        raise Unreadable("specversion is not 1.0")
    kind = known.get(str(event.get("type")))
    if kind is None:
        raise Unreadable(f"unknown type {event.get('type')!r}")
    missing = [name for name in ("id", "source") if not isinstance(event.get(name), str)]
    if missing or "data" not in event:
        raise Unreadable(f"{missing[0] if missing else 'data'} is missing")
    if not event["source"].startswith(_SOURCE):
        raise Unreadable(f"source {event['source']!r} is none of ours")
    return Envelope(
        id=event["id"],
        source=event["source"].removeprefix(_SOURCE),
        time=_text(event, "time"),
        tenant=_text(event, "tenantid"),
        conversation=_text(event, "conversationid"),
        cause=_text(event, "causationid"),
        traceparent=_text(event, "traceparent"),
        message=_message(kind, event["data"]),
    )


def _text(event: dict[str, Any], name: str) -> str:
    found = event.get(name, "")
    if not isinstance(found, str):
        raise Unreadable(f"{name} is not a string")
    return found


def _message(kind: type[M], data: Any) -> M:
    try:
        return kind.model_validate(data)
    except ValidationError as invalid:
        raise Unreadable(why_invalid(invalid)) from invalid


MOST_ERRORS = 8
LONGEST_REASON = 2000
"""Errors that are named, and characters in all: a reason travels in messages, and invalid input can have thousands."""


def why_invalid(invalid: ValidationError) -> str:
    """The first errors of a validation in one line, by path, without the values (they may be private)."""
    errors = invalid.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{'.'.join(str(part) for part in error['loc']) or '$'}: {error['msg']}" for error in errors[:MOST_ERRORS]]
    more = [f"and {len(errors) - MOST_ERRORS} more"] if len(errors) > MOST_ERRORS else []
    return "; ".join([*(each[: LONGEST_REASON // MOST_ERRORS] for each in named), *more])
