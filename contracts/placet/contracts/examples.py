"""One golden example of every message: a note for customer C-42, from the wish to the receipt. All values invented."""

import json
from datetime import UTC, datetime
from typing import Any

from placet.canonical import CanonicalCommand, command_digest
from placet.contracts.actions import ACTIONS
from placet.contracts.catalogue import CATALOGUE, ROUTES
from placet.contracts.commands import (
    ClaimAnswered,
    ClaimRequested,
    CommandReady,
    CommandReported,
    ResourceResolve,
    ResourceResolved,
)
from placet.contracts.message import Envelope, Message
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
from placet.contracts.turns import (
    MessageView,
    ToolCallProposed,
    ToolCallSettled,
    ToolCallView,
    TurnAccepted,
    TurnChanged,
    TurnRequested,
    TurnResumed,
    TurnRetried,
    TurnStalled,
)

TENANT = "acme"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ACTION = ACTIONS["crm.note.create"]
TEXT = "Please note that C-42 wants to be called back on Monday."
ARGUMENTS: dict[str, Any] = {"customer_id": "C-42", "body": "Wants to be called back on Monday."}
CUSTOMER: dict[str, Any] = {"id": "C-42", "name": "Example Bakery", "notes": 2}
ANSWER: dict[str, Any] = {"decision": "approve"}
TOKEN = "Bearer example-token"  # noqa: S105 - a stand-in: no token of this form is ever valid
CANONICAL = CanonicalCommand(
    tenant=TENANT,
    principal="user:ada",
    action=ACTION.name,
    action_version=ACTION.version,
    resource="C-42",
    arguments=ARGUMENTS,
    expected_revision="7",
).encode()
DIGEST = command_digest(CANONICAL)


def _id(prefix: str, number: int) -> str:
    return f"{prefix}_019344c1a80070008000{number:012x}"


CONVERSATION, TURN, CALL, OPERATION = _id("conv", 1), _id("turn", 2), _id("call", 3), _id("op", 4)
STALL = _id("stall", 5)
INTERRUPT = "apr_" + "5eed" * 12
"""As an interrupt's id is: impossible to guess, were it not printed here."""

CALLED: dict[str, Any] = {"turn_id": TURN, "conversation_id": CONVERSATION, "tool_call_id": CALL}
POLICY: dict[str, Any] = {"rule": "writes-need-a-person", "policy_version": "2026-11-01"}


def _at(hour: int, day: int = 29) -> datetime:
    return datetime(2026, 11, day, hour, tzinfo=UTC)


EXAMPLES: tuple[Message, ...] = (
    TurnRequested(request_id="req-0001", conversation_id=CONVERSATION, text=TEXT, authorization=TOKEN),
    TurnAccepted(turn_id=TURN, conversation_id=CONVERSATION, principal="user:ada", mandate="5f" * 32, text=TEXT),
    ToolCallProposed(**CALLED, principal="user:ada", mandate="5f" * 32, action=ACTION.name, arguments=json.dumps(ARGUMENTS)),
    TurnStalled(turn_id=TURN, conversation_id=CONVERSATION, stall_id=STALL, attempt=1, reason="tool_call.settled.v1"),
    TurnRetried(turn_id=TURN, conversation_id=CONVERSATION, stalls=(STALL,)),
    TurnResumed(turn_id=TURN, conversation_id=CONVERSATION, stall_id=STALL),
    TurnChanged(
        turn_id=TURN,
        conversation_id=CONVERSATION,
        revision=3,
        state="awaiting_approval",
        messages=(
            MessageView(position=1, role="user", text=TEXT),
            MessageView(
                position=2,
                role="assistant",
                tool_calls=(ToolCallView(tool_call_id=CALL, action=ACTION.name, arguments=json.dumps(ARGUMENTS)),),
            ),
        ),
    ),
    ToolCallSettled(**CALLED, operation_id=OPERATION, outcome="succeeded", result={"note_id": "N-3"}),
    PermissionAsked(**CALLED, operation_id=OPERATION, digest=DIGEST, canonical=CANONICAL.decode(), current=CUSTOMER),
    PermissionRequested(
        **CALLED,
        **POLICY,
        interrupt_id=INTERRUPT,
        operation_id=OPERATION,
        action=ACTION.name,
        summary="Add a note to customer C-42",
        risk="low",
        resource="C-42",
        expected_revision="7",
        arguments=ARGUMENTS,
        current=CUSTOMER,
        requested_by="user:ada",
        approver_scope="placet:approval.decide",
        second_person=True,
        digest=DIGEST,
        expires_at=_at(10, day=30),
        response_schema={
            "type": "object",
            "required": ["decision"],
            "properties": {"decision": {"enum": ["approve", "deny"]}},
        },
    ),
    PermissionDecided(
        **CALLED,
        **POLICY,
        interrupt_id=INTERRUPT,
        operation_id=OPERATION,
        action="crm.note.create",
        digest=DIGEST,
        decision="approved",
        decided_by="user:grace",
        reason="The customer did call",
        valid_until=_at(10, day=30),
    ),
    DecisionSubmitted(interrupt_id=INTERRUPT, answer=ANSWER, authorization=TOKEN),
    DecisionRelayed(interrupt_id=INTERRUPT, answer=ANSWER, authorization=TOKEN),
    DecisionAnswered(
        status=200,
        code="decided",
        interrupt_id=INTERRUPT,
        state="approved",
        decided_by="user:grace",
        decided_at=_at(11),
        digest=DIGEST,
    ),
    CommandReady(operation_id=OPERATION, action="crm.note.create"),
    CommandReported(
        operation_id=OPERATION,
        fence=1,
        worker="executor-1",
        outcome="succeeded",
        receipt="crm-operation-9001",
        result={"note_id": "N-3"},
    ),
    ResourceResolve(action=ACTION.name, resource="C-42"),
    ResourceResolved(resource="C-42", exists=True, revision="7", current=CUSTOMER),
    ClaimRequested(operation_id=OPERATION, worker="executor-1", replay_seconds=86400),
    ClaimAnswered(
        operation_id=OPERATION, granted=True, fence=1, lease_seconds=30, digest=DIGEST, canonical=CANONICAL.decode()
    ),
    DecisionVerify(interrupt_id=INTERRUPT, operation_id=OPERATION, digest=DIGEST),
    DecisionVerified(operation_id=OPERATION, verdict="valid"),
)


def golden() -> dict[str, bytes]:
    """Every example in its envelope, as it travels, by wire name in the order of the catalogue."""
    found = {example.wire: example for example in EXAMPLES}
    return {
        route.wire: _envelope(found[route.wire], number).encode()
        for number, route in enumerate(CATALOGUE, start=1)
        if route.wire in found
    }


def without_example() -> list[str]:
    """The messages that nobody has given an example yet."""
    return sorted(ROUTES.keys() - {example.wire for example in EXAMPLES})


def _envelope(message: Message, number: int) -> Envelope[Message]:
    return Envelope(
        id=_id("msg", 0x100 + number),
        source=ROUTES[message.wire].publisher,
        time="2026-11-29T10:00:00+00:00",
        tenant=TENANT,
        conversation=CONVERSATION,
        cause=_id("msg", 0x100),
        traceparent=TRACE,
        message=message,
    )
