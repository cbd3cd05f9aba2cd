"""Pure rules of ingress: what a request is, and what state a turn shows."""

import hashlib
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from placet.contracts.ids import Id
from placet.contracts.turns import TURN_ENDS

SUBMIT, READ, READ_CARDS = "placet:turn.submit", "placet:conversation.read", "placet:approval.read"
"""The scopes that the routes want of a token. What deciding wants stands in each card."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a text of blanks alone asks for nothing")
    return text


class TurnRequest(BaseModel):
    """The body of POST /v1/turns. A conversation that is not named, or not known by its name, is begun."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    conversation_id: Id | None = None
    text: Annotated[
        str, Field(min_length=1, max_length=16000, json_schema_extra={"pattern": r"\S"}), AfterValidator(_not_blank)
    ]

    def fingerprint(self) -> str:
        """What must be the same when a key is used again."""
        return hashlib.sha256(f"{self.conversation_id or ''}\n{self.text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Accepted:
    """A turn that was accepted now, or by the same request before."""

    turn_id: str
    conversation_id: str
    replayed: bool


class Problem(Exception):
    """Why a request is refused: an RFC 9457 problem. `code` is for machines, `path` says where in the body."""

    def __init__(self, status: int, code: str, detail: str, path: str | None = None, **members: Any) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status, self.code, self.detail, self.path, self.members = status, code, detail, path, members

    def body(self) -> dict[str, Any]:
        """The problem document."""
        document: dict[str, Any] = {
            "type": f"urn:placet:problem:{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        return document | self.members | ({"path": self.path} if self.path else {})


def scope_missing(scope: str) -> Problem:
    """The token may not do this; which scope could is said for machines too (RFC 6750)."""
    return Problem(403, "scope_missing", f"the token lacks the scope {scope}", scope=scope)


def not_found(what: str) -> Problem:
    """There is no such thing, or it is somebody else's: the caller cannot tell which."""
    return Problem(404, "not_found", f"there is no such {what}")


def shown_turn(turn: dict[str, Any], cards: Sequence[dict[str, Any]], settled: Container[str]) -> dict[str, Any]:
    """A turn as users see it, from the planner's news (`stalled` says why it cannot go on) and its cards.

    A card is often faster than the planner's own news, and so is its decision: what waits is what has an open card, and
    what is decided is under way until its call is `settled`. From then on the planner knows better.
    """
    if turn["state"] in TURN_ENDS:
        return turn | {"stalled": None}  # news that it can go on again may come after the end
    own = [card for card in cards if card["turn_id"] == turn["turn_id"]]
    if any(card["state"] == "pending" for card in own):
        return turn | {"state": "awaiting_approval"}
    if turn["stalled"] is not None:
        return turn | {"state": "resume_failed", "reason": turn["stalled"]}
    under_way = any(card["card"]["tool_call_id"] not in settled for card in own)
    return turn | {"state": "executing"} if under_way else turn


def idempotency_key(header: str | None) -> str:
    """The key of a request: a quoted string as the draft has it, or a bare one. Raises Problem."""
    key = (header or "").strip().strip('"')
    if not key:
        raise Problem(400, "idempotency_key_required", "send an Idempotency-Key header, a fresh one for each new turn")
    if len(key) > 255 or not key.isprintable() or not key.isascii():
        raise Problem(400, "idempotency_key_invalid", "an Idempotency-Key has at most 255 printable ASCII characters")
    return key
