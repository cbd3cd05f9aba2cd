"""Rows of the ledger. Nothing else in admission knows SQL."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import asyncpg

from placet.contracts.commands import CommandReported
from placet.contracts.permissions import PermissionDecided
from placet.contracts.turns import Outcome, ToolCallSettled
from placet.messaging import Outbox, Promise
from placet.service.database import Database, load_queries


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a row of the ledger is about: a tool call, and the operation that it was given."""

    tenant: str
    operation_id: str
    conversation_id: str
    turn_id: str
    tool_call_id: str
    action: str

    def settled(self, outcome: Outcome, reason: str, result: Any) -> ToolCallSettled:
        """The message that ends the tool call."""
        return ToolCallSettled(
            turn_id=self.turn_id,
            conversation_id=self.conversation_id,
            tool_call_id=self.tool_call_id,
            operation_id=self.operation_id,
            outcome=outcome,
            reason=reason,
            result=result,
        )


@dataclass(frozen=True, slots=True)
class Proposal:
    """A checked tool call as it is recorded. Without canonical bytes it is a rejection."""

    call: ToolCall
    reason: str = ""
    digest: str | None = None
    canonical: bytes | None = None


@dataclass(frozen=True, slots=True)
class Ledgered:
    """A command as the ledger has it."""

    call: ToolCall
    interrupt_id: str
    digest: str
    canonical: bytes
    state: str
    expired: bool
    uncertain: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A granted claim. `uncertain` says why an earlier one may already have had the effect; no request begins after
    `seconds_left`, whatever the lease.
    """

    fence: int
    uncertain: str
    seconds_left: float


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A claim that ended without an outcome: nothing was sent under it, or its worker was lost."""

    fence: int
    worker: str
    outcome: Literal["not_sent", "lost"]
    reason: str
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Over:
    """A command that will not be claimed any more. `uncertain` says why it may all the same have had its effect."""

    call: ToolCall
    uncertain: str


@dataclass(frozen=True, slots=True)
class LostLease:
    """A command whose worker has gone silent."""

    call: ToolCall
    fence: int
    worker: str
    may_replay: bool


class Conflict(Exception):
    """The operation is known by other bytes, or not at all; nothing was changed (A4)."""


class Store:
    """The command ledger."""

    def __init__(self, database: Database, outbox: Outbox) -> None:
        self._database = database
        self._outbox = outbox
        self._sql = load_queries("placet.admission")

    async def propose(self, proposal: Proposal, promises: Sequence[Promise]) -> bool:
        """Record a proposal once."""
        call = proposal.call
        row = await self._outbox.commit(
            self._sql["propose"],
            promises,
            tenant=call.tenant,
            operation_id=call.operation_id,
            conversation_id=call.conversation_id,
            turn_id=call.turn_id,
            tool_call_id=call.tool_call_id,
            verdict="asked" if proposal.canonical else "rejected",
            reason=proposal.reason,
            action=call.action,
            digest=proposal.digest,
            canonical=proposal.canonical,
        )
        return row["changed"]

    async def decide(self, tenant: str, decided: PermissionDecided, promises: Sequence[Promise]) -> bool:
        """Take a decision into the ledger: an approved proposal waits to be claimed, any other has ended.

        Says whether this is news: a decision that is there already stays. Raises Conflict when it is about other bytes.
        """
        row = await self._outbox.commit(
            self._sql["decide"],
            promises,
            tenant=tenant,
            operation_id=decided.operation_id,
            tool_call_id=decided.tool_call_id,
            interrupt_id=decided.interrupt_id,
            digest=decided.digest,
            policy_version=decided.policy_version,
            rule=decided.rule,
            decided_by=decided.decided_by,
            expires_at=decided.valid_until,
            state="pending" if decided.decision == "approved" else decided.decision,
            reason=decided.reason,
        )
        if not row["asked"]:
            raise Conflict(
                f"a decision about {decided.operation_id}, which was not proposed with the digest {decided.digest}"
            )
        return row["changed"]

    async def command(self, tenant: str, operation_id: str) -> Ledgered | None:
        """A command of this tenant."""
        row = await self._database.one(self._sql["command_by_id"], tenant=tenant, operation_id=operation_id)
        return (
            None
            if row is None
            else Ledgered(
                call=_call(row, tenant),
                interrupt_id=row["interrupt_id"],
                digest=row["digest"],
                canonical=row["canonical"],
                state=row["state"],
                expired=row["expired"],
                uncertain=row["uncertain"],
            )
        )

    async def claim(
        self, tenant: str, operation_id: str, worker: str, lease_seconds: float, replay_seconds: int | None
    ) -> Claim | None:
        """Claim a pending command, or None when somebody else has it or its time is over."""
        row = await self._database.transition(
            self._sql["claim"],
            tenant=tenant,
            operation_id=operation_id,
            worker=worker,
            lease_seconds=lease_seconds,
            replay_seconds=replay_seconds,
        )
        return Claim(row["fence"], row["uncertain"], row["seconds_left"]) if row["changed"] else None

    async def end_unclaimed(self, over: Over, state: str, reason: str, promises: Sequence[Promise]) -> bool:
        """End a command that may not be claimed any more, if what is known of it has not changed."""
        row = await self._outbox.commit(
            self._sql["end_unclaimed"],
            promises,
            tenant=over.call.tenant,
            operation_id=over.call.operation_id,
            uncertain=over.uncertain,
            state=state,
            reason=reason,
        )
        return row["changed"]

    async def settle(self, tenant: str, report: CommandReported, promises: Sequence[Promise]) -> bool:
        """Record a report, and end the command with it if its fence still counts."""
        row = await self._outbox.commit(
            self._sql["settle"],
            promises,
            tenant=tenant,
            operation_id=report.operation_id,
            fence=report.fence,
            worker=report.worker,
            requests=report.attempts,
            state=report.outcome,
            reason=report.reason,
            receipt=report.receipt,
            result=json.dumps(report.result),
        )
        return row["changed"]

    async def release(self, call: ToolCall, given_back: GivenBack, promises: Sequence[Promise]) -> bool:
        """Give a claim back, and record it among the attempts."""
        row = await self._outbox.commit(
            self._sql["release"],
            promises,
            tenant=call.tenant,
            operation_id=call.operation_id,
            fence=given_back.fence,
            worker=given_back.worker,
            requests=given_back.requests,
            outcome=given_back.outcome,
            reason=given_back.reason,
            uncertain=given_back.reason if given_back.outcome == "lost" else "",
        )
        return row["changed"]

    async def leases_lost(self) -> list[LostLease]:
        """Commands whose lease is over, the longest first."""
        rows = await self._database.all(self._sql["leases_lost"])
        return [LostLease(_call(row, row["tenant"]), row["fence"], row["claimed_by"], row["may_replay"]) for row in rows]

    async def waiting_over(self) -> list[Over]:
        """Commands that ran out of time, or of the provider's memory for their key, before anybody claimed them."""
        rows = await self._database.all(self._sql["waiting_over"])
        return [Over(_call(row, row["tenant"]), row["uncertain"]) for row in rows]


def _call(row: asyncpg.Record, tenant: str) -> ToolCall:
    return ToolCall(tenant, row["operation_id"], row["conversation_id"], row["turn_id"], row["tool_call_id"], row["action"])
