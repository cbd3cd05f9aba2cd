"""From a command to its outcome: claim with lease and fence, settle under the fence."""

from typing import Literal

from placet.admission import domain
from placet.admission.store import GivenBack, Ledgered, Over, Store
from placet.contracts.commands import ClaimAnswered, ClaimRequested, CommandReady, CommandReported
from placet.contracts.permissions import DecisionVerified, DecisionVerify
from placet.contracts.turns import told
from placet.messaging import Cause, Requester


class Claims:
    """Handlers of what executors ask and report."""

    def __init__(self, store: Store, requester: Requester, *, lease_seconds: float, ask_seconds: float) -> None:
        self._store, self._requester = store, requester
        self._lease_seconds, self._ask_seconds = lease_seconds, ask_seconds

    async def on_claim_requested(self, claim: ClaimRequested, cause: Cause) -> ClaimAnswered:
        """Give the command to this worker, if the decision still stands and nobody else has it.

        Raises NoAnswer when permission does not answer: no answer means no dispatch (A7).
        """
        command = await self._store.command(cause.tenant, claim.operation_id)
        if command is None:
            return _refused(claim, "there is no such command")
        if command.state != "pending":
            return _refused(claim, f"the command is {command.state}")
        if command.expired:
            return await self._end(command, "expired", domain.TIME_IS_OVER, claim, cause)
        verified = await self._verify(command, cause)
        if verified.verdict != "valid":
            return await self._end(command, verified.verdict, verified.reason, claim, cause)
        return await self._claim(command, claim, cause)

    async def _verify(self, command: Ledgered, cause: Cause) -> DecisionVerified:
        question = DecisionVerify(
            interrupt_id=command.interrupt_id, operation_id=command.call.operation_id, digest=command.digest
        )
        return await self._requester.ask(question, DecisionVerified, tenant=cause.tenant, timeout=self._ask_seconds)

    async def _claim(self, command: Ledgered, claim: ClaimRequested, cause: Cause) -> ClaimAnswered:
        granted = await self._store.claim(
            cause.tenant, claim.operation_id, claim.worker, self._lease_seconds, claim.replay_seconds
        )
        if granted is None:
            return _refused(claim, "another worker has the command, or its time is over")
        return ClaimAnswered(
            operation_id=claim.operation_id,
            granted=True,
            fence=granted.fence,
            uncertain=granted.uncertain,
            lease_seconds=self._lease_seconds,
            seconds_left=granted.seconds_left,
            digest=command.digest,
            canonical=command.canonical.decode(),
        )

    async def _end(
        self, command: Ledgered, state: Literal["denied", "expired"], reason: str, claim: ClaimRequested, cause: Cause
    ) -> ClaimAnswered:
        call = command.call
        outcome, why = domain.end_of_unclaimed(state, reason, command.uncertain)
        settled = call.settled(outcome, why, told(outcome, why))
        promised = cause.promise(settled, conversation=call.conversation_id)
        await self._store.end_unclaimed(Over(call, command.uncertain), outcome, why, [promised])
        return _refused(claim, reason)

    async def on_command_reported(self, report: CommandReported, cause: Cause) -> None:
        """Settle the command under its fence; give it back when nothing was sent."""
        command = await self._store.command(cause.tenant, report.operation_id)
        if command is None:
            raise LookupError(f"a report about {report.operation_id}, which is not in the ledger")
        if report.outcome == "not_sent" and domain.after_nothing_sent(report.fence) == "pending":
            ready = cause.promise(CommandReady(operation_id=report.operation_id, action=command.call.action))
            given_back = GivenBack(report.fence, report.worker, "not_sent", report.reason, report.attempts)
            await self._store.release(command.call, given_back, [ready])
            return
        outcome = domain.unsent_for_good(command.uncertain) if report.outcome == "not_sent" else report.outcome
        result = report.result if outcome == "succeeded" else told(outcome, report.reason)
        settled = command.call.settled(outcome, report.reason, result)
        promised = cause.promise(settled, conversation=command.call.conversation_id)
        await self._store.settle(cause.tenant, report.model_copy(update={"outcome": outcome}), [promised])


def _refused(claim: ClaimRequested, reason: str) -> ClaimAnswered:
    return ClaimAnswered(operation_id=claim.operation_id, granted=False, reason=reason)
