"""One question as permission stores it, for tests: alice wants a note deleted, and another person must agree."""

from datetime import UTC, datetime
from typing import Any

from placet.permission.domain import Approval

DIGEST = "sha256:" + "a" * 64
SCOPE = "placet:approval.decide"
APPROVAL = Approval(
    tenant="t1",
    interrupt_id="apr_1",
    operation_id="op_1",
    conversation_id="c1",
    turn_id="turn_1",
    tool_call_id="call_1",
    action="crm.note.delete",
    requested_by="alice",
    digest=DIGEST,
    scope=SCOPE,
    second_person=True,
    rule="deletion-needs-a-second-person",
    policy_version="test@sha256:0",
    state="pending",
    past=False,
    expires_at=datetime(2026, 1, 1, tzinfo=UTC),
    decided_by=None,
    decided_at=None,
    comment="",
    traceparent="",
)

ODD_ANSWERS: tuple[dict[str, Any], ...] = (
    {},
    {"decision": None},
    {"decision": "yes"},
    {"decision": True},
    {"decision": 1},
    {"approved": True},
    {"decision": "Approve"},
    {"decision": "approve", "extra": 1},
    {"decision": ["approve"]},
    {"decision": "approve "},
    {"decision": {"approve": True}},
)
"""Answers that approve nothing, even when they name the right digest (B13)."""
