"""What is said about permission: the question, the card, the answer, the decision, and its check at claim."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from placet.contracts.ids import Id, Subject
from placet.contracts.message import Command, Event

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""`sha256:` and 64 hex digits over the canonical command."""


class PermissionAsked(Command):
    """Admission asks whether this very command may run. `canonical` are the bytes behind the digest, as text."""

    wire: ClassVar[str] = "permission.asked.v1"
    operation_id: Id
    turn_id: Id
    conversation_id: Id
    tool_call_id: Id
    digest: Digest
    canonical: str
    current: dict[str, Any] | None = Field(default=None, description="The target as it is now, for the card")


class PermissionRequested(Event):
    """A card: what will be done, to what, by whose wish, until when, and how to answer (P3)."""

    wire: ClassVar[str] = "permission.requested.v1"
    interrupt_id: Id
    operation_id: Id
    turn_id: Id
    conversation_id: Id
    tool_call_id: Id
    action: str
    summary: str
    risk: Literal["low", "high"]
    resource: str | None
    expected_revision: str | None
    arguments: dict[str, Any]
    current: dict[str, Any] | None
    requested_by: Subject
    approver_scope: str = Field(description="The scope that an approver's token must have")
    second_person: bool = Field(description="Whether who asked for it is barred from approving it")
    digest: Digest
    expires_at: datetime
    rule: str
    policy_version: str
    response_schema: dict[str, Any]


class DecisionSubmitted(Command):
    """An approver's answer, with the approver's own short-lived token: verified by permission, never stored (P6).

    `answer` is any JSON here: an odd answer must reach the one place that judges answers, and leave the card open (P5).
    """

    wire: ClassVar[str] = "decision.submitted.v1"
    interrupt_id: Id
    answer: Any
    authorization: str = Field(repr=False)


class DecisionRelayed(DecisionSubmitted):
    """The same answer, given over HTTP and brought by ingress, which waits for the reply."""

    wire: ClassVar[str] = "decision.relayed.v1"


class DecisionAnswered(Event):
    """What became of an answer: an HTTP status, and the decision that stands (P4)."""

    wire: ClassVar[str] = "decision.answered.v1"
    status: int = Field(ge=200, le=599)
    code: str
    detail: str = ""
    interrupt_id: Id
    state: str | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    digest: Digest | None = None


class PermissionDecided(Event):
    """Policy, a person, or time has decided one proposal."""

    wire: ClassVar[str] = "permission.decided.v1"
    interrupt_id: Id
    operation_id: Id
    turn_id: Id
    conversation_id: Id
    tool_call_id: Id
    action: str
    digest: Digest
    decision: Literal["approved", "denied", "expired"]
    decided_by: str
    reason: str = ""
    rule: str
    policy_version: str
    valid_until: datetime


class DecisionVerify(Command):
    """Admission asks, at claim, whether the decision still stands (A7)."""

    wire: ClassVar[str] = "decision.verify.v1"
    interrupt_id: Id
    operation_id: Id
    digest: Digest


class DecisionVerified(Event):
    """Whether the decision still stands, under the policy in force now."""

    wire: ClassVar[str] = "decision.verified.v1"
    operation_id: Id
    verdict: Literal["valid", "denied", "expired"]
    reason: str = ""
