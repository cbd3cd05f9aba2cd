"""The loop that finds commands whose worker has gone silent, and those that nobody claimed in time."""

from placet.admission import domain
from placet.admission.store import GivenBack, LostLease, Store, ToolCall
from placet.contracts.commands import CommandReady, CommandReported
from placet.contracts.turns import Outcome, told
from placet.messaging import Promise, promise


class Recovery:
    """Gives lost commands back where the connector's contract makes that harmless; else ends them as unknown (E4)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run_once(self) -> int:
        """Mend what is there now; how many were found."""
        lost = await self._store.leases_lost()
        for lease in lost:
            await self._mend(lease)
        over = await self._store.waiting_over()
        for command in over:
            outcome, why = domain.end_of_unclaimed("expired", domain.TIME_IS_OVER, command.uncertain)
            await self._store.end_unclaimed(command, outcome, why, [_settled(command.call, outcome, why)])
        return len(lost) + len(over)

    async def _mend(self, lease: LostLease) -> None:
        call = lease.call
        if domain.after_lost_lease(lease.fence, lease.may_replay) == "pending":
            ready = promise(
                "admission",
                CommandReady(operation_id=call.operation_id, action=call.action),
                tenant=call.tenant,
                conversation=call.conversation_id,
            )
            given_back = GivenBack(
                lease.fence, lease.worker, "lost", "the worker was lost, and may have reached the provider"
            )
            await self._store.release(call, given_back, [ready])
            return
        reason = "the worker that had the command was lost, and nothing tells whether it reached the provider"
        report = CommandReported(
            operation_id=call.operation_id, fence=lease.fence, worker=lease.worker, outcome="unknown", reason=reason
        )
        await self._store.settle(call.tenant, report, [_settled(call, "unknown", reason)])


def _settled(call: ToolCall, outcome: Outcome, reason: str) -> Promise:
    message = call.settled(outcome, reason, told(outcome, reason))
    return promise("admission", message, tenant=call.tenant, conversation=call.conversation_id)
