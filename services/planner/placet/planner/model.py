"""The model, as the planner sees it: one question, one reply. Providers stand behind this port."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from placet.contracts.turns import Outcome, Role


@dataclass(frozen=True, slots=True)
class CallAsked:
    """A tool call as the model emitted it: its id is a hint, its arguments are text that nobody has read yet."""

    hint: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says: text, calls, or both. Without calls the turn is over."""

    text: str
    calls: tuple[CallAsked, ...] = ()


@dataclass(frozen=True, slots=True)
class CallSaid:
    """A call in the transcript, under our own id."""

    tool_call_id: str
    action: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the transcript. `text` of a tool message is the result, as JSON."""

    position: int
    role: Role
    text: str
    tool_call_id: str | None = None
    outcome: Outcome | None = None
    calls: tuple[CallSaid, ...] = ()


class ModelFailed(Exception):
    """The model gave no usable answer; asking again may help."""


class Model(Protocol):
    """Whatever can continue a transcript."""

    name: str

    async def ask(self, transcript: Sequence[Said]) -> Reply:
        """Continue the transcript. Raises ModelFailed."""
        ...
