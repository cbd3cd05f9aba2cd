"""Pure rules of permission: what a policy says of a command, and what an answer is worth."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from placet.auth import Principal
from placet.contracts.message import why_invalid
from placet.contracts.permissions import Digest
from placet.permission.policy import Obligations, Policy

NO_RULE = "no-rule"

State = Literal["pending", "approved", "denied", "expired", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Decided:
    """Policy answers by itself."""

    decision: Literal["approved", "denied"]
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A person is to be asked."""

    rule: str
    risk: Literal["low", "high"]
    approver: Obligations


def decide(policy: Policy, action: str) -> Decided | Ask:
    """Deny rules win over every kind of allow; what must be asked is asked; what no rule names is denied (P1)."""
    if rule := policy.of(action, "deny"):
        return Decided("denied", rule.id, rule.reason or f"the rule {rule.id} denies {action}")
    if (rule := policy.of(action, "ask")) and rule.approver:
        return Ask(rule.id, rule.risk, rule.approver)
    if rule := policy.of(action, "allow"):
        return Decided("approved", rule.id, "")
    return Decided("denied", NO_RULE, f"no rule of the policy allows {action}")


class Answer(BaseModel):
    """An approver's answer. Only these words, of these types, and nothing else: all others approve nothing (P5, B13)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    decision: Literal["approve", "deny", "cancelled"]
    digest: Digest
    comment: Annotated[str, Field(max_length=2000)] = ""

    @property
    def state(self) -> Literal["approved", "denied"]:
        """A cancelled answer is no approval."""
        return "approved" if self.decision == "approve" else "denied"


@dataclass(frozen=True, slots=True)
class Approval:
    """A question as it is stored."""

    tenant: str
    interrupt_id: str
    operation_id: str
    conversation_id: str
    turn_id: str
    tool_call_id: str
    action: str
    requested_by: str
    digest: str
    scope: str
    second_person: bool
    rule: str
    policy_version: str
    state: State
    past: bool
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    comment: str
    traceparent: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that decides nothing: HTTP status, code for machines, words for people."""

    status: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """An answer to what is decided already: the one who decided gets the same reply, others learn what stands (P4)."""

    status: Literal[200, 409]


def read_answer(answer: Any) -> Answer | Refusal:
    """An answer of any shape; a malformed one leaves the card open."""
    try:
        return Answer.model_validate(answer)
    except ValidationError as invalid:
        return Refusal(422, "malformed_answer", why_invalid(invalid))


def judge(approval: Approval, answer: Answer, approver: Principal) -> Answer | Refusal | Repeat:
    """Whether this person may decide this question with this answer, as far as can be said before the write."""
    if not approver.may(approval.scope):
        return Refusal(403, "not_an_approver", f"the token lacks the scope {approval.scope}")
    if approval.second_person and approver.subject == approval.requested_by and answer.state == "approved":
        return Refusal(403, "second_person_required", "who asked for it cannot approve it")
    if answer.digest != approval.digest:
        return Refusal(409, "digest_mismatch", "the answer is about other bytes than the question")
    if approval.state in ("approved", "denied"):
        same = approval.decided_by == approver.subject and approval.state == answer.state
        return Repeat(200 if same else 409)
    if approval.state == "expired" or approval.past:
        return Refusal(409, "expired", "the question was not answered in time")
    return answer


def decided(approval: Approval, answer: Answer, approver: Principal) -> Approval:
    """The question as this answer decides it."""
    return replace(approval, state=answer.state, decided_by=approver.subject, comment=answer.comment)


def expired(approval: Approval) -> Approval:
    """The question as time decides it, for nobody (P7)."""
    reason = "nobody answered in time; the call was not executed and may be asked for again"
    return replace(approval, state="expired", decided_by=None, comment=reason)


def still_valid(
    policy: Policy, approval: Approval | None, operation_id: str, digest: str
) -> tuple[Literal["valid", "denied", "expired"], str]:
    """Whether a decision about this operation and these bytes still stands, under the policy in force now (A7)."""
    if (
        approval is None
        or approval.state != "approved"
        or (approval.operation_id, approval.digest) != (operation_id, digest)
    ):
        return "denied", "there is no approval of this command"
    if approval.past:
        return "expired", "the approval is no longer valid"
    match decide(policy, approval.action):
        case Decided(decision="denied", reason=reason):
            return "denied", reason
        case Ask() as ask if reason := _falls_short(ask, approval):
            return "denied", f"the rule {ask.rule} now asks {reason}"
        case _:
            return "valid", ""


def _falls_short(ask: Ask, approval: Approval) -> str:
    """What a rule asks now that an approval given before does not have; empty when it has everything."""
    if approval.decided_by == f"rule:{approval.rule}":
        return "a person, and only a rule has approved it"
    if ask.approver.second_person and approval.decided_by == approval.requested_by:
        return "a second person, and who asked for it has approved it"
    if ask.approver.scope != approval.scope:
        return f"for the scope {ask.approver.scope}, and it was approved with {approval.scope}"
    return ""
