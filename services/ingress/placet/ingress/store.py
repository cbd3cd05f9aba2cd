"""Rows of the read model. Nothing else in ingress knows SQL."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import asyncpg

from placet.auth import Principal
from placet.contracts.permissions import PermissionDecided, PermissionRequested
from placet.contracts.turns import TurnAccepted, TurnChanged, TurnResumed, TurnStalled
from placet.ingress.domain import Accepted, Problem, not_found, shown_turn
from placet.messaging import Outbox, Promise
from placet.service.database import Database, load_queries


class Store:
    """Accepted turns and what clients see."""

    def __init__(self, database: Database, outbox: Outbox) -> None:
        self._database = database
        self._outbox = outbox
        self._sql = load_queries("placet.ingress")

    async def accept(
        self, who: Principal, key: str, fingerprint: str, turn: TurnAccepted, promises: Sequence[Promise]
    ) -> Accepted:
        """Accept a turn, or find the one that this key stands for. Raises Problem."""
        try:
            row = await self._outbox.commit(
                self._sql["accept_turn"],
                promises,
                tenant=who.tenant,
                principal=who.subject,
                idempotency_key=key,
                fingerprint=fingerprint,
                turn_id=turn.turn_id,
                conversation_id=turn.conversation_id,
            )
        except asyncpg.UniqueViolationError as error:
            raise _collision(error) from error
        if row["changed"]:
            return Accepted(turn.turn_id, turn.conversation_id, replayed=False)
        return _known(row, fingerprint)

    async def apply_turn(
        self, tenant: str, news: TurnChanged, *, late: bool = False
    ) -> Literal["applied", "known", "early"]:
        """Take over the planner's news, in the planner's order; `late` takes it although something before it is missing."""
        row = await self._database.transition(
            self._sql["apply_turn"],
            tenant=tenant,
            turn_id=news.turn_id,
            conversation_id=news.conversation_id,
            revision=news.revision,
            state=news.state,
            reason=news.reason,
            late=late,
            messages=json.dumps([message.model_dump(mode="json") for message in news.messages]),
            type=news.wire,
            data=news.model_dump_json(),
        )
        if row["changed"]:
            return "applied"
        return "early" if row["early"] else "known"

    async def apply_stall(self, tenant: str, news: TurnStalled | TurnResumed) -> bool:
        """Take over that the planner cannot go on with a turn, or that this is over."""
        stalled = isinstance(news, TurnStalled)
        row = await self._database.transition(
            self._sql["apply_stall"],
            tenant=tenant,
            stall_id=news.stall_id,
            turn_id=news.turn_id,
            conversation_id=news.conversation_id,
            attempt=news.attempt if stalled else 0,
            reason=news.reason if stalled else "",
            over=not stalled,
            type=news.wire,
            data=news.model_dump_json(),
        )
        return row["changed"]

    async def open_stalls(self, who: Principal, conversation_id: str, turn_id: str) -> tuple[str, ...] | None:
        """What a turn stands still for; None when it is not there for this principal."""
        row = await self._database.one(
            self._sql["open_stalls"],
            tenant=who.tenant,
            conversation_id=conversation_id,
            turn_id=turn_id,
            owner=who.subject,
        )
        return tuple(row["stalls"]) if row else None

    async def retry_turn(self, tenant: str, stalls: Sequence[str], promises: Sequence[Promise]) -> None:
        """Promise to have these taken up again, if that is not under way already."""
        await self._outbox.commit(self._sql["retry_turn"], promises, tenant=tenant, stalls=list(stalls))

    async def show_card(self, tenant: str, card: PermissionRequested) -> bool:
        """Take over a card."""
        row = await self._database.transition(
            self._sql["show_card"],
            tenant=tenant,
            interrupt_id=card.interrupt_id,
            conversation_id=card.conversation_id,
            turn_id=card.turn_id,
            type=card.wire,
            data=card.model_dump_json(),
        )
        return row["changed"]

    async def close_card(self, tenant: str, decided: PermissionDecided) -> bool:
        """Take over a card's decision."""
        row = await self._database.transition(
            self._sql["close_card"],
            tenant=tenant,
            interrupt_id=decided.interrupt_id,
            conversation_id=decided.conversation_id,
            turn_id=decided.turn_id,
            state=decided.decision,
            decided_by=decided.decided_by,
            reason=decided.reason,
            type=decided.wire,
            data=decided.model_dump_json(),
        )
        return row["changed"]

    async def conversation(self, who: Principal, conversation_id: str) -> dict[str, Any] | None:
        """A conversation as its owner sees it, with the states that its cards give to its turns."""
        row = await self._database.one(
            self._sql["conversation"], tenant=who.tenant, conversation_id=conversation_id, owner=who.subject
        )
        if row is None:
            return None
        cards, messages = json.loads(row["cards"]), json.loads(row["messages"])
        settled = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
        turns = [shown_turn(turn, cards, settled) for turn in json.loads(row["turns"])]
        return {
            "conversation_id": conversation_id,
            "state": turns[-1]["state"] if turns else "accepted",
            "last_event_id": row["last_event"],
            "turns": turns,
            "messages": messages,
            "cards": cards,
        }

    async def owns(self, who: Principal, conversation_id: str) -> bool:
        """Whether the conversation is there for this principal."""
        row = await self._database.one(
            self._sql["owns"], tenant=who.tenant, conversation_id=conversation_id, owner=who.subject
        )
        return row is not None

    async def cards(self, tenant: str, after: tuple[datetime, str], most: int) -> list[asyncpg.Record]:
        """Open cards of the tenant from behind a cursor."""
        return await self._database.all(self._sql["cards"], tenant=tenant, after_time=after[0], after_id=after[1], most=most)

    async def card(self, tenant: str, interrupt_id: str) -> asyncpg.Record | None:
        """One card of the tenant."""
        return await self._database.one(self._sql["card"], tenant=tenant, interrupt_id=interrupt_id)

    async def events_after(self, tenant: str, conversation_id: str, after: int) -> list[asyncpg.Record]:
        """What a viewer has not seen yet, at most a hundred at a time."""
        return await self._database.all(
            self._sql["events_after"], tenant=tenant, conversation_id=conversation_id, after=after
        )


def _known(row: asyncpg.Record, fingerprint: str) -> Accepted:
    if row["known_turn"] and row["known_fingerprint"] == fingerprint:
        return Accepted(row["known_turn"], row["known_conversation"], replayed=True)
    if row["known_turn"]:
        raise Problem(422, "idempotency_key_reused", "this Idempotency-Key stands for another request")
    if row["foreign_owner"]:
        raise not_found("conversation")
    raise _turn_in_progress()


def _turn_in_progress() -> Problem:
    return Problem(409, "turn_in_progress", "the conversation has a turn that has not ended")


def _collision(error: asyncpg.UniqueViolationError) -> Problem:
    """Two requests at once: the other one was faster. Sent again, this one finds what became of it."""
    if error.constraint_name == "one_turn_at_a_time":
        return _turn_in_progress()
    return Problem(409, "request_in_progress", "the same request is being accepted; send it again")
