"""Rows of the transcript. Nothing else in the planner knows SQL."""

import json
from collections.abc import Sequence

import asyncpg

from placet.contracts.turns import TurnAccepted
from placet.messaging import Outbox, Promise
from placet.planner.domain import Call, Change, Turn, begun
from placet.planner.model import CallSaid, Said
from placet.service.database import Database, load_queries


class Store:
    """Turns, messages and tool calls."""

    def __init__(self, database: Database, outbox: Outbox) -> None:
        self._database = database
        self._outbox = outbox
        self._sql = load_queries("placet.planner")

    async def begin(self, tenant: str, accepted: TurnAccepted) -> Turn:
        """Begin a turn once; the turn as it is then."""
        row = await self._outbox.commit(
            self._sql["begin_turn"],
            tenant=tenant,
            turn_id=accepted.turn_id,
            conversation_id=accepted.conversation_id,
            principal=accepted.principal,
            mandate=accepted.mandate,
            text=accepted.text,
        )
        if not row["changed"]:
            return await self.turn(tenant, accepted.turn_id)
        return begun(tenant, accepted, row["position"])

    async def turn(self, tenant: str, turn_id: str) -> Turn:
        """A turn as it is now. Raises LookupError when there is none."""
        row = await self._database.one(self._sql["load_turn"], tenant=tenant, turn_id=turn_id)
        if row is None:
            raise LookupError(f"there is no turn {turn_id}")
        return _turn(tenant, turn_id, row)

    async def transcript(self, turn: Turn) -> list[Said]:
        """The whole conversation of a turn."""
        rows = await self._database.all(self._sql["transcript"], tenant=turn.tenant, conversation_id=turn.conversation_id)
        return [_said(row) for row in rows]

    async def save(self, turn: Turn, change: Change, promises: Sequence[Promise]) -> bool:
        """Write a change, if the turn is still as it was read."""
        row = await self._outbox.commit(
            self._sql["save_turn"],
            promises,
            tenant=turn.tenant,
            turn_id=turn.turn_id,
            revision=turn.revision,
            state=change.state,
            reason=change.reason,
            messages=json.dumps([_message(said) for said in change.said]),
            calls=json.dumps([_call(call, index) for index, call in enumerate(change.called)]),
            states=json.dumps(dict(change.states)),
        )
        return row["changed"]

    async def mark_awaiting(self, tenant: str, tool_call_id: str) -> bool:
        """A card is out for this call."""
        row = await self._database.transition(self._sql["mark_awaiting"], tenant=tenant, tool_call_id=tool_call_id)
        return row["changed"]


def _turn(tenant: str, turn_id: str, row: asyncpg.Record) -> Turn:
    return Turn(
        tenant=tenant,
        turn_id=turn_id,
        conversation_id=row["conversation_id"],
        principal=row["principal"],
        mandate=row["mandate"],
        state=row["state"],
        reason=row["reason"],
        revision=row["revision"],
        steps=row["steps"],
        next_position=row["next_position"],
        calls=tuple(Call(**call) for call in json.loads(row["calls"])),
    )


def _said(row: asyncpg.Record) -> Said:
    calls = tuple(CallSaid(**call) for call in json.loads(row["calls"]))
    return Said(row["position"], row["role"], row["text"], row["tool_call_id"], row["outcome"], calls)


def _message(said: Said) -> dict[str, object]:
    return {
        "position": said.position,
        "role": said.role,
        "text": said.text,
        "tool_call_id": said.tool_call_id,
        "outcome": said.outcome,
    }


def _call(call: Call, ordinal: int) -> dict[str, object]:
    return {
        "tool_call_id": call.tool_call_id,
        "position": call.position,
        "ordinal": ordinal,
        "hint": call.hint,
        "action": call.action,
        "arguments": call.arguments,
        "effect": call.effect,
        "state": call.state,
    }
