"""What the executor does with each message: claim, dispatch, report; and look up the targets of proposals."""

import asyncio

import structlog

from placet.canonical import CanonicalCommand, command_digest
from placet.contracts.actions import ACTIONS
from placet.contracts.commands import (
    ClaimAnswered,
    ClaimRequested,
    CommandReady,
    CommandReported,
    ResourceResolve,
    ResourceResolved,
)
from placet.contracts.ids import new_id
from placet.contracts.message import Message
from placet.executor.connector import Ambiguous, Connector, NotSent, Refused
from placet.executor.dispatch import Known, Undecided, dispatch
from placet.messaging import Cause, NoAnswer, Publisher, Requester
from placet.service.crash import crash_point
from placet.telemetry import annotate

log = structlog.get_logger()


class Handlers:
    """One method per message. Only what admission's answer to a claim holds is ever executed."""

    def __init__(
        self,
        connector: Connector,
        requester: Requester,
        publisher: Publisher,
        *,
        ask_seconds: float,
        dispatch_share: float,
        provider_seconds: float,
    ) -> None:
        self._connector, self._requester, self._publisher = connector, requester, publisher
        self._ask_seconds, self._dispatch_share, self._provider_seconds = ask_seconds, dispatch_share, provider_seconds

    async def on_command_ready(self, ready: CommandReady, cause: Cause) -> None:
        """Claim the command, run it, report what is known. Raises NoAnswer when admission does not answer."""
        worker, asked = new_id("worker"), asyncio.get_running_loop().time()
        claim = await self._claim(ready, worker, cause)
        if not claim.granted:
            log.info("claim.refused", action="claim.refused", operation_id=ready.operation_id, reason=claim.reason)
            return
        crash_point("after_claim")
        try:
            known = await self._run(claim, asked)
        except Undecided as undecided:
            log.warning(
                "command.undecided", action="command.undecided", operation_id=ready.operation_id, seen=str(undecided)
            )
            return
        await self._report(claim, worker, known, cause)

    async def _claim(self, ready: CommandReady, worker: str, cause: Cause) -> ClaimAnswered:
        replay = self._connector.replay_seconds(ready.action)
        question = ClaimRequested(operation_id=ready.operation_id, worker=worker, replay_seconds=replay)
        return await self._requester.ask(question, ClaimAnswered, tenant=cause.tenant, timeout=self._ask_seconds)

    async def _run(self, claim: ClaimAnswered, asked: float) -> Known:
        """Run the command while lease and decision last; they are counted from when the claim was `asked` for."""
        canonical = claim.canonical.encode()
        if command_digest(canonical) != claim.digest:
            raise ValueError("the digest of the claim is not that of its bytes")
        command = CanonicalCommand.decode(canonical)
        annotate(placet__action=command.action, placet__fence=claim.fence)
        lasts = min(claim.lease_seconds * self._dispatch_share, claim.lease_seconds - self._provider_seconds)
        if claim.seconds_left is not None:
            lasts = min(lasts, claim.seconds_left)
        seconds = asked + lasts - asyncio.get_running_loop().time()
        if seconds <= 0:
            return Known("not_sent", 0, "the time to run it was nearly over before anything could be sent")
        return await dispatch(
            self._connector,
            command,
            claim.operation_id,
            seconds=seconds,
            request_seconds=self._provider_seconds,
            uncertain=claim.uncertain,
        )

    async def _report(self, claim: ClaimAnswered, worker: str, known: Known, cause: Cause) -> None:
        """Until the broker has confirmed the report, the delivery is not acknowledged: what is known must not be lost."""
        report = CommandReported(
            operation_id=claim.operation_id,
            fence=claim.fence,
            worker=worker,
            outcome=known.outcome,
            reason=known.reason,
            receipt=known.receipt,
            result=known.result,
            attempts=known.attempts,
        )
        promised = cause.promise(report)
        crash_point("before_report")
        while error := (await self._publisher.publish([promised]))[0]:
            log.warning("report.unsent", action="report.unsent", operation_id=claim.operation_id, error=error)
            await asyncio.sleep(1)
        crash_point("after_report")

    async def on_resource_resolve(self, asked: ResourceResolve, cause: Cause) -> Message:
        """Look up a target inside the tenant. When the provider does not answer, nor do we: we are asked again."""
        if asked.action not in ACTIONS:
            raise ValueError(f"there is no action {asked.action!r}")
        try:
            async with asyncio.timeout(self._provider_seconds):
                target = await self._connector.resolve(cause.tenant, asked.action, asked.resource)
        except (NotSent, Ambiguous, Refused, TimeoutError) as error:
            raise NoAnswer(f"the provider did not say: {str(error) or 'it had too long'}") from error
        if target is None:
            return ResourceResolved(resource=asked.resource, exists=False)
        return ResourceResolved(resource=asked.resource, exists=True, revision=target.revision, current=target.current)
