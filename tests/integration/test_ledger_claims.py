"""Claims over the real ledger: what a lease, the time that is left, and a report that comes late are worth."""

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from placet.admission.claims import Claims
from placet.admission.recovery import Recovery
from placet.admission.store import Conflict, GivenBack, Proposal, Store, ToolCall
from placet.canonical import CanonicalCommand, command_digest
from placet.contracts.commands import ClaimAnswered, ClaimRequested, CommandReady, CommandReported
from placet.contracts.ids import new_id
from placet.contracts.permissions import DecisionVerified, PermissionDecided
from placet.messaging import Cause, Promise, Requester, promise
from stations import Json, Station

DAY = 86400
CAUSE = Cause("admission", "msg_1", "t", "c", "")
NOTE = CanonicalCommand("t", "alice", "crm.note.create", 1, "C-42", {"customer_id": "C-42", "body": "hello"}, "1").encode()
READY = promise("admission", CommandReady(operation_id="op_1", action="crm.note.create"), tenant="t", conversation="c")


class Permission(Requester):
    """Says that every decision stands."""

    def __init__(self) -> None:
        super().__init__("admission", "", user_prefix="")

    async def ask(self, question: Any, reply: Any, **_: Any) -> Any:
        return DecisionVerified(operation_id=question.operation_id, verdict="valid")


class Ledger:
    """One approved command, and those who work on it."""

    def __init__(self, station: Station, store: Store) -> None:
        self._station, self._store = station, store
        self.claims = Claims(store, Permission(), lease_seconds=30, ask_seconds=1)
        self.recovery = Recovery(store)
        self.call = ToolCall("t", new_id("op"), "c", new_id("turn"), new_id("call"), "crm.note.create")

    async def approve(self, *, seconds: float = 3600) -> None:
        """Admit the command, valid for so long."""
        await self._store.propose(Proposal(self.call, digest=command_digest(NOTE), canonical=NOTE), [])
        assert await self.decide(command_digest(NOTE), seconds=seconds)

    async def decide(self, digest: str, *, seconds: float = 3600, promises: Sequence[Promise] = ()) -> bool:
        """An approval of these bytes; whether it was news."""
        call = self.call
        decided = PermissionDecided(
            interrupt_id="apr_1",
            operation_id=call.operation_id,
            turn_id=call.turn_id,
            conversation_id=call.conversation_id,
            tool_call_id=call.tool_call_id,
            action=call.action,
            digest=digest,
            decision="approved",
            decided_by="ann",
            rule="notes",
            policy_version="p",
            valid_until=datetime.now(UTC) + timedelta(seconds=seconds),
        )
        return await self._store.decide("t", decided, promises)

    async def claim(self, replay_seconds: int | None = DAY) -> ClaimAnswered:
        """A worker's claim."""
        asked = ClaimRequested(operation_id=self.call.operation_id, worker="worker_1", replay_seconds=replay_seconds)
        return await self.claims.on_claim_requested(asked, CAUSE)

    async def lose(self) -> None:
        """The lease of the worker is over, and it is noticed."""
        await self._station.execute(
            "admission", "update command set lease_until = clock_timestamp() where state = 'dispatching'"
        )
        assert await self.recovery.run_once() == 1

    async def release(self, given_back: GivenBack) -> None:
        """What recovery does with a lease that it has found over."""
        await self._store.release(self.call, given_back, [])

    async def report(self, fence: int, outcome: str, **more: Any) -> None:
        """A worker's report."""
        fields = {"operation_id": self.call.operation_id, "fence": fence, "worker": "worker_1", "outcome": outcome} | more
        await self.claims.on_command_reported(CommandReported.model_validate(fields), CAUSE)

    async def command(self) -> Json:
        """The command's row."""
        (row,) = await self._station.rows("admission", "command")
        return row

    async def outbox(self) -> list[Json]:
        """What is promised and not published."""
        return await self._station.rows("admission", "outbox")

    async def attempts(self) -> list[tuple[int, str, bool]]:
        """What is kept of its attempts: fence, outcome, whether it came late."""
        rows = await self._station.rows("admission", "attempt")
        return sorted((row["fence"], row["outcome"], row["late"]) for row in rows)


@pytest.fixture
async def ledger(station: Station) -> AsyncGenerator[Ledger]:
    """An approved command on an empty ledger."""
    database = await station.database("admission")
    await station.execute("admission", "truncate command, attempt, proposal")
    made = Ledger(station, Store(database, await station.outbox("admission", grace=3600)))
    yield made
    await station.execute("admission", "truncate command, attempt, proposal")


@pytest.mark.req("A4", "P10")
async def test_a_decision_about_other_bytes_is_a_conflict_and_changes_nothing(ledger: Ledger) -> None:
    await ledger.approve()
    before = await ledger.command()
    with pytest.raises(Conflict):
        await ledger.decide(command_digest(NOTE + b" "), promises=[READY])
    assert await ledger.command() == before
    assert await ledger.outbox() == []


@pytest.mark.req("A4", "A9")
async def test_the_same_decision_once_more_is_a_replay_and_promises_nothing(ledger: Ledger) -> None:
    await ledger.approve()
    before = await ledger.command()
    assert not await ledger.decide(command_digest(NOTE), promises=[READY])
    assert await ledger.command() == before
    assert await ledger.outbox() == []


@pytest.mark.req("A7", "P7")
async def test_b33_no_request_begins_after_the_decision_has_run_out_whatever_the_lease(ledger: Ledger) -> None:
    await ledger.approve(seconds=20)
    claim = await ledger.claim()
    assert claim.granted
    assert claim.seconds_left is not None
    assert 0 < claim.seconds_left <= 20 < claim.lease_seconds


@pytest.mark.req("E2", "E3")
async def test_an_uncertain_request_is_repeated_only_while_the_provider_remembers_its_key(ledger: Ledger) -> None:
    await ledger.approve()
    first = await ledger.claim(replay_seconds=25)
    await ledger.lose()
    second = await ledger.claim(replay_seconds=25)
    assert (first.seconds_left or 0) <= 25
    assert second.uncertain
    assert 0 < (second.seconds_left or 0) < (first.seconds_left or 0), "the window is that of the first request"


@pytest.mark.req("E3")
async def test_the_provider_s_memory_begins_with_the_first_request_and_not_with_a_claim_that_sent_none(
    ledger: Ledger,
) -> None:
    await ledger.approve()
    await ledger.claim(replay_seconds=25)
    first = (await ledger.command())["replay_until"]
    await ledger.report(1, "not_sent", attempts=0)
    await ledger.claim(replay_seconds=25)
    assert (await ledger.command())["replay_until"] > first


@pytest.mark.req("A6", "E4")
async def test_a_late_success_settles_what_is_uncertain_and_in_nobody_s_hands(ledger: Ledger) -> None:
    await ledger.approve()
    await ledger.claim()
    await ledger.lose()
    await ledger.report(1, "succeeded", receipt="rcpt_1")
    command = await ledger.command()
    assert (command["state"], command["receipt"]) == ("succeeded", "rcpt_1")
    assert await ledger.attempts() == [(1, "lost", False), (1, "succeeded", True)]
    assert not (await ledger.claim()).granted


@pytest.mark.req("A6", "E6")
async def test_a_worker_that_reported_while_its_lease_was_looked_at_was_not_lost(ledger: Ledger) -> None:
    await ledger.approve()
    await ledger.claim()
    await ledger.report(1, "succeeded", receipt="rcpt_1")
    await ledger.release(GivenBack(1, "worker_1", "lost", "the worker was lost"))
    assert await ledger.attempts() == [(1, "succeeded", False)]


@pytest.mark.req("A6")
async def test_a_late_success_is_kept_but_settles_nothing_while_another_worker_has_the_command(ledger: Ledger) -> None:
    await ledger.approve()
    await ledger.claim()
    await ledger.lose()
    await ledger.claim()
    await ledger.report(1, "succeeded", receipt="rcpt_1")
    assert (await ledger.command())["state"] == "dispatching"
    assert (1, "succeeded", True) in await ledger.attempts()


@pytest.mark.req("E4", "E6")
@pytest.mark.parametrize(("replay", "state"), [(DAY, "pending"), (None, "unknown")])
async def test_that_nothing_was_sent_is_kept_although_it_comes_late(ledger: Ledger, replay: int | None, state: str) -> None:
    await ledger.approve()
    await ledger.claim(replay)
    await ledger.lose()
    await ledger.report(1, "not_sent", attempts=0)
    assert (await ledger.command())["state"] == state
    assert (1, "not_sent", True) in await ledger.attempts()


@pytest.mark.req("E4")
async def test_that_one_claim_failed_proves_nothing_of_another(ledger: Ledger) -> None:
    await ledger.approve()
    await ledger.claim(replay_seconds=1000)
    await ledger.lose()
    await ledger.claim(replay_seconds=1000)
    await ledger.report(2, "unknown")
    await ledger.report(1, "failed")
    await ledger.report(2, "failed")
    assert (await ledger.command())["state"] == "unknown"


@pytest.mark.req("E4")
async def test_late_evidence_of_the_only_claim_settles_an_unknown(ledger: Ledger) -> None:
    await ledger.approve()
    await ledger.claim(None)
    await ledger.lose()
    assert (await ledger.command())["state"] == "unknown"
    await ledger.report(1, "failed")
    assert (await ledger.command())["state"] == "failed"
