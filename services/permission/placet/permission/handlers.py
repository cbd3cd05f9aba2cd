"""What the permission service does with each message: read, decide purely, write with what it promises."""

from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from placet.auth import InvalidToken, Principal, Verifier
from placet.canonical import CanonicalCommand, command_digest
from placet.contracts.actions import ACTIONS
from placet.contracts.ids import new_secret_id
from placet.contracts.message import Message
from placet.contracts.permissions import (
    DecisionAnswered,
    DecisionRelayed,
    DecisionSubmitted,
    DecisionVerified,
    DecisionVerify,
    PermissionAsked,
    PermissionDecided,
    PermissionRequested,
)
from placet.messaging import Cause
from placet.permission.domain import (
    Answer,
    Approval,
    Ask,
    Decided,
    Refusal,
    Repeat,
    decide,
    decided,
    judge,
    read_answer,
    still_valid,
)
from placet.permission.policy import Obligations, Policy
from placet.permission.store import Store
from placet.telemetry import annotate, current_traceparent, link_to

log = structlog.get_logger()

RESPONSE_SCHEMA = Answer.model_json_schema()
BY_RULE_SECONDS = 3600
"""How long a rule's own permission may wait to be used; the rule is asked again at claim anyway."""


class Handlers:
    """One method per message."""

    def __init__(self, store: Store, policy: Policy, verifier: Verifier) -> None:
        self._store, self._policy, self._verifier = store, policy, verifier
        self._version = policy.version

    async def on_permission_asked(self, asked: PermissionAsked, cause: Cause) -> None:
        """Answer at once when policy can; otherwise store the question and show the card."""
        canonical = asked.canonical.encode()
        if command_digest(canonical) != asked.digest:
            raise ValueError("the digest is not that of the canonical bytes")
        command = CanonicalCommand.decode(canonical)
        verdict = decide(self._policy, command.action)
        approval = self._question(asked, command, verdict, cause, await self._store.now())
        message = decision_of(approval) if isinstance(verdict, Decided) else _card(approval, asked, command, verdict)
        annotate(placet__permission__state=approval.state, placet__policy__rule=approval.rule)
        await self._store.open(approval, canonical, [cause.promise(message)])

    def _question(
        self, asked: PermissionAsked, command: CanonicalCommand, verdict: Decided | Ask, cause: Cause, now: datetime
    ) -> Approval:
        by_rule = isinstance(verdict, Decided)
        approver = Obligations() if by_rule else verdict.approver
        lasts = BY_RULE_SECONDS if by_rule else approver.expires_in_seconds
        return Approval(
            tenant=cause.tenant,
            interrupt_id=new_secret_id("apr"),
            operation_id=asked.operation_id,
            conversation_id=asked.conversation_id,
            turn_id=asked.turn_id,
            tool_call_id=asked.tool_call_id,
            action=command.action,
            requested_by=command.principal,
            digest=asked.digest,
            scope=approver.scope,
            second_person=approver.second_person,
            rule=verdict.rule,
            policy_version=self._version,
            state=verdict.decision if by_rule else "pending",
            past=False,
            expires_at=now + timedelta(seconds=lasts),
            decided_by=f"rule:{verdict.rule}" if by_rule else None,
            decided_at=None,
            comment=verdict.reason if by_rule else "",
            traceparent=current_traceparent(),
        )

    async def on_decision_submitted(self, submitted: DecisionSubmitted, cause: Cause) -> None:
        """An approver app's answer. It hears of the result as everybody does: by permission.decided."""
        answered = await self._answer(submitted, cause)
        if answered.status != 200:
            log.warning(
                "decision.refused", action="decision.refused", code=answered.code, interrupt_id=answered.interrupt_id
            )

    async def on_decision_relayed(self, relayed: DecisionRelayed, cause: Cause) -> Message:
        """An answer over HTTP, whose giver waits for the result."""
        return await self._answer(relayed, cause)

    async def _answer(self, submitted: DecisionSubmitted, cause: Cause) -> DecisionAnswered:
        try:
            approver = await self._verifier.verify(submitted.authorization)
        except InvalidToken as invalid:
            return _refused(submitted, Refusal(401, "invalid_token", f"the approver's token is not valid: {invalid}"))
        approval = await self._store.approval(approver.tenant, submitted.interrupt_id)
        if approval is None:
            return _refused(submitted, Refusal(404, "not_found", "there is no such question"))
        link_to(approval.traceparent, "resumes")
        annotate(placet__turn__id=approval.turn_id, placet__operation__id=approval.operation_id)
        answer = read_answer(submitted.answer)
        if isinstance(answer, Refusal):
            return _refused(submitted, answer)
        return await self._decide(approval, answer, approver, submitted, cause)

    async def _decide(
        self, approval: Approval, answer: Answer, approver: Principal, submitted: DecisionSubmitted, cause: Cause
    ) -> DecisionAnswered:
        match judge(approval, answer, approver):
            case Refusal() as refusal:
                return _refused(submitted, refusal)
            case Repeat(status):
                return _stands(approval, status)
            case Answer():
                pass
        now = decided(approval, answer, approver)
        promised = cause.promise(decision_of(now), tenant=now.tenant, conversation=now.conversation_id)
        at = await self._store.decide(now, [promised])
        if at is None:
            return await self._too_late(approval, answer, approver, submitted)
        return _stands(replace(now, decided_at=at), 200)

    async def _too_late(
        self, approval: Approval, answer: Answer, approver: Principal, submitted: DecisionSubmitted
    ) -> DecisionAnswered:
        """Somebody else, or time, was faster between our reading and our writing: what stands now is the answer."""
        standing = await self._store.approval(approval.tenant, approval.interrupt_id)
        match judge(standing, answer, approver) if standing else None:
            case Repeat(status) if standing:
                return _stands(standing, status)
            case Refusal() as refusal:
                return _refused(submitted, refusal)
            case _:
                raise RuntimeError(f"{approval.interrupt_id} could not be decided although it is open")

    async def on_decision_verify(self, asked: DecisionVerify, cause: Cause) -> Message:
        """Say whether a decision still stands, for a claim."""
        approval = await self._store.approval(cause.tenant, asked.interrupt_id)
        verdict, reason = still_valid(self._policy, approval, asked.operation_id, asked.digest)
        return DecisionVerified(operation_id=asked.operation_id, verdict=verdict, reason=reason)


def _card(approval: Approval, asked: PermissionAsked, command: CanonicalCommand, verdict: Ask) -> PermissionRequested:
    return PermissionRequested(
        interrupt_id=approval.interrupt_id,
        operation_id=approval.operation_id,
        turn_id=approval.turn_id,
        conversation_id=approval.conversation_id,
        tool_call_id=approval.tool_call_id,
        action=command.action,
        summary=ACTIONS[command.action].summary,
        risk=verdict.risk,
        resource=command.resource,
        expected_revision=command.expected_revision,
        arguments=command.arguments,
        current=asked.current,
        requested_by=command.principal,
        approver_scope=approval.scope,
        second_person=approval.second_person,
        digest=approval.digest,
        expires_at=approval.expires_at,
        rule=approval.rule,
        policy_version=approval.policy_version,
        response_schema=RESPONSE_SCHEMA,
    )


def decision_of(approval: Approval) -> PermissionDecided:
    """What everybody is told of a question that is decided. Raises ValueError when it is open."""
    if approval.state not in ("approved", "denied", "expired"):
        raise ValueError(f"{approval.interrupt_id} is {approval.state}, which is no decision")
    return PermissionDecided(
        interrupt_id=approval.interrupt_id,
        operation_id=approval.operation_id,
        turn_id=approval.turn_id,
        conversation_id=approval.conversation_id,
        tool_call_id=approval.tool_call_id,
        action=approval.action,
        digest=approval.digest,
        decision=approval.state,
        decided_by=approval.decided_by or "",
        reason=approval.comment,
        rule=approval.rule,
        policy_version=approval.policy_version,
        valid_until=approval.expires_at,
    )


def _stands(approval: Approval, status: int) -> DecisionAnswered:
    return DecisionAnswered(
        status=status,
        code="decided" if status == 200 else "already_decided",
        interrupt_id=approval.interrupt_id,
        state=approval.state,
        decided_by=approval.decided_by,
        decided_at=approval.decided_at,
        digest=approval.digest,
    )


def _refused(submitted: DecisionSubmitted, refusal: Refusal) -> DecisionAnswered:
    return DecisionAnswered(
        status=refusal.status, code=refusal.code, detail=refusal.detail, interrupt_id=submitted.interrupt_id
    )
