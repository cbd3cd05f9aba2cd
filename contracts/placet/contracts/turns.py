"""What is said about turns: by frontends, by ingress and by the planner."""

from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from placet.contracts.ids import Id, Subject
from placet.contracts.message import Command, Event

TurnEnd = Literal["completed", "failed", "cancelled", "budget_exhausted"]
TurnState = Literal["accepted", "planning", "executing", "awaiting_approval", TurnEnd]
"""What users see of a turn (T8)."""

Outcome = Literal["succeeded", "rejected", "denied", "expired", "failed", "unknown", "skipped", "cancelled"]
"""How a tool call ends; each call ends once (G2)."""

Role = Literal["user", "assistant", "tool"]
"""Who says a message of the transcript."""

TURN_ENDS: frozenset[str] = frozenset(get_args(TurnEnd))
CALL_ENDS: frozenset[str] = frozenset(get_args(Outcome))


def told(outcome: Outcome, reason: str) -> dict[str, str]:
    """What the model is told of a call that did not succeed: the status, the reason, and whether anything was done (T5)."""
    executed = "it may or may not have been executed" if outcome == "unknown" else "it was not executed"
    return {"status": outcome, "reason": reason, "executed": executed}


class TurnRequested(Command):
    """A frontend asks for a turn over the broker; the person's own token stands in it and is never stored (U2)."""

    wire: ClassVar[str] = "turn.requested.v1"
    request_id: Id = Field(description="Idempotency key, chosen by the frontend")
    conversation_id: Id | None = None
    text: str = Field(min_length=1, max_length=16000)
    authorization: str = Field(repr=False)


class TurnAccepted(Event):
    """Ingress verified who asks and stored the turn."""

    wire: ClassVar[str] = "turn.accepted.v1"
    turn_id: Id
    conversation_id: Id
    principal: Subject
    text: str
    mandate: str = Field(max_length=128, description="Ingress vouches for tenant, conversation, turn and principal")


class ToolCallProposed(Command):
    """The model asks for an effect. The arguments are the model's own text: admission reads it, strictly (B29)."""

    wire: ClassVar[str] = "tool_call.proposed.v1"
    turn_id: Id
    conversation_id: Id
    tool_call_id: Id
    principal: Subject
    mandate: str = Field(max_length=128, description="As ingress gave it with the turn; the planner cannot make one")
    action: str = Field(max_length=128)
    arguments: str = Field(max_length=32768)


class ToolCallView(BaseModel):
    """A tool call as users see it in the transcript."""

    model_config = ConfigDict(frozen=True)
    tool_call_id: Id
    action: str
    arguments: str


class MessageView(BaseModel):
    """One message of the transcript as users see it. `position` orders the conversation and names the message."""

    model_config = ConfigDict(frozen=True)
    position: int = Field(ge=0)
    role: Role
    text: str = ""
    tool_calls: tuple[ToolCallView, ...] = ()
    tool_call_id: Id | None = None
    outcome: Outcome | None = None


class TurnChanged(Event):
    """The turn moved: its state, and what the transcript gained in the same commit. A lower revision is older news."""

    wire: ClassVar[str] = "turn.changed.v1"
    turn_id: Id
    conversation_id: Id
    revision: int = Field(ge=1)
    state: TurnState
    reason: str = ""
    messages: tuple[MessageView, ...] = ()


class TurnStalled(Event):
    """The turn cannot go on: the planner gave up on a message that moves it, and keeps the message to be handled again."""

    wire: ClassVar[str] = "turn.stalled.v1"
    turn_id: Id
    conversation_id: Id
    stall_id: Id = Field(description="Names the kept message; it is over when turn.resumed names it")
    attempt: int = Field(ge=1, description="Which attempt at this message failed: the first delivery, or a retry")
    reason: str = ""


class TurnRetried(Command):
    """The turn's owner wants a stalled turn to go on: the planner handles again what it keeps of it."""

    wire: ClassVar[str] = "turn.retried.v1"
    turn_id: Id
    conversation_id: Id
    stalls: tuple[Id, ...] = Field(description="Those that the owner sees; each is answered by turn.resumed or turn.stalled")


class TurnResumed(Event):
    """A message that stalled the turn has been handled after all. Nothing that is said of this stall later counts."""

    wire: ClassVar[str] = "turn.resumed.v1"
    turn_id: Id
    conversation_id: Id
    stall_id: Id


class ToolCallSettled(Event):
    """The one outcome of a tool call. `result` is what the model is told."""

    wire: ClassVar[str] = "tool_call.settled.v1"
    turn_id: Id
    conversation_id: Id
    tool_call_id: Id
    operation_id: Id | None = None
    outcome: Outcome
    reason: str = ""
    result: Any = None
