"""A request as the routes see it: who sends it, its body read strictly, its key, and the names and places it gives."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import asyncpg
from fastapi import Request
from pydantic import BaseModel, TypeAdapter, ValidationError

from placet.auth import InvalidToken, Principal, Verifier
from placet.canonical import UnsafeJson, strict_loads
from placet.contracts.ids import Id
from placet.ingress.domain import Problem, idempotency_key, not_found, scope_missing

B = TypeVar("B", bound=BaseModel)

_BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), "")
_ID = TypeAdapter(Id)
_MEDIA_TYPE = re.compile(r"application/([!-:<-~]+\+)?json[ \t]*(;.*)?", re.IGNORECASE)
_UNSAFE = {
    "not_json": "the body is not JSON",
    "not_utf8": "the body is not UTF-8",
    "too_deep": "the body is nested too deep",
    "duplicate_key": "an object has the same name twice",
    "not_a_number": "NaN and infinities are no JSON",
    "number_out_of_range": "a number is beyond what every reader keeps exactly, ±(2^53−1)",
    "nul_character": "a text holds the NUL character",
    "lone_surrogate": "a text holds half of a surrogate pair",
}
"""What strict JSON refuses, for people."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent the request, and the token that says so; the token goes on to permission with a decision."""

    who: Principal
    token: str


class Reader:
    """Reads what a request needs a key or a limit for: its caller and its body."""

    def __init__(self, verifier: Verifier, *, max_body: int) -> None:
        self._verifier, self._max_body = verifier, max_body

    async def caller(self, request: Request, scope: str | None = None) -> Caller:
        """Who sent it, if the token has the scope. Raises Problem."""
        token = _token(request)
        try:
            who = await self._verifier.verify(token)
        except InvalidToken as invalid:
            raise Problem(401, "invalid_token", f"the token is not valid: {invalid}") from invalid
        if scope and not who.may(scope):
            raise scope_missing(scope)
        return Caller(who, token)

    async def body(self, request: Request) -> Any:
        """The body as strict JSON, read no further than its limit. Raises Problem 415, or 422 with what offends."""
        if not _MEDIA_TYPE.fullmatch(request.headers.get("content-type", "application/json")):
            raise Problem(415, "unsupported_media_type", "send the body as application/json")
        received = bytearray()
        async for chunk in request.stream():
            received += chunk
            if len(received) > self._max_body:
                raise Problem(422, "too_large", f"a body has at most {self._max_body} bytes", "$")
        try:
            return strict_loads(bytes(received), max_bytes=self._max_body)
        except UnsafeJson as unsafe:
            detail = _UNSAFE.get(unsafe.code, "the body is not safe to read") if received.strip() else "the body is empty"
            raise Problem(422, unsafe.code, detail, unsafe.path) from unsafe


def _token(request: Request) -> str:
    sent = request.headers.getlist("authorization")
    if len(sent) > 1:
        raise Problem(400, "authorization_repeated", "send one Authorization header")
    scheme, _, token = (sent[0] if sent else "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Problem(401, "token_required", "send Authorization: Bearer with an access token")
    return token


def valid(kind: type[B], body: Any) -> B:
    """The body as what it should be. Raises Problem 422 with the first path that does not fit."""
    try:
        return kind.model_validate(body)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        path = ".".join(["$", *(str(part) for part in first["loc"])])
        said = first["msg"].removeprefix("Value error, ")
        detail = "the body should be a JSON object" if first["type"] == "model_type" else said
        raise Problem(422, "invalid_body", detail, path) from invalid


def key_of(request: Request) -> str:
    """What makes the request the same one when it is sent again. Raises Problem."""
    sent = request.headers.getlist("idempotency-key")
    if len(sent) > 1:
        raise Problem(400, "idempotency_key_invalid", "send one Idempotency-Key header")
    return idempotency_key(sent[0] if sent else None)


def known_form(name: str) -> None:
    """What cannot be an id of ours names nothing. Raises Problem."""
    try:
        _ID.validate_python(name)
    except ValidationError as invalid:
        raise not_found("thing") from invalid


def last_event(request: Request) -> int:
    """The number of the last event that the viewer has seen; 0 is none. Raises Problem."""
    after = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    if not after.isascii() or not after.isdecimal() or len(after) > 15:
        raise Problem(400, "invalid_event_id", "Last-Event-ID is the number of an event")
    return int(after)


def limit(request: Request) -> int:
    """How many items the answer may hold, 100 at most. Raises Problem."""
    text = request.query_params.get("limit", "50")
    if not text.isascii() or not text.isdecimal() or len(text) > 6 or int(text) < 1:
        raise Problem(400, "invalid_limit", "limit is a number from 1 to 100")
    return min(100, int(text))


def cursor_behind(row: asyncpg.Record) -> str:
    """The cursor with which a list goes on behind this card."""
    return urlsafe_b64encode(f"{row['shown_at'].isoformat()}|{row['interrupt_id']}".encode()).decode()


def place(request: Request) -> tuple[datetime, str]:
    """The card behind which the list goes on, by its time and id. Raises Problem."""
    cursor = request.query_params.get("cursor")
    if not cursor:
        return _BEGINNING
    try:
        at, _, interrupt_id = urlsafe_b64decode(cursor.encode()).decode().partition("|")
        known_form(interrupt_id)
        return datetime.fromisoformat(at).astimezone(UTC), interrupt_id
    except (ValueError, OverflowError, Problem) as error:
        raise Problem(400, "invalid_cursor", "a cursor is what the last answer gave") from error
