"""Pure rules of admission: what a tool call must be to become a proposal, and what becomes of a lost claim."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from placet.canonical import UnsafeJson, strict_loads
from placet.contracts.actions import ACTIONS, Action
from placet.contracts.message import why_invalid
from placet.contracts.turns import Outcome

TIME_IS_OVER = "the time to run it is over"

MOST_CLAIMS = 5
"""A command that has cost so many workers is not given to another one (A8)."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A tool call that fits the allowlist: its action, its arguments with defaults, and the target that they name."""

    action: Action
    arguments: dict[str, Any]
    resource: str | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A tool call that does not, with a reason that the model can act on."""

    reason: str


def check(action: str, arguments: str) -> Checked | Rejected:
    """Hold a tool call against the allowlist: known action, strict JSON, closed schema (A1)."""
    known = ACTIONS.get(action)
    if known is None:
        return Rejected(f"unknown_action: there is no action {action!r}; there are {', '.join(sorted(ACTIONS))}")
    try:
        parsed = known.arguments.model_validate(strict_loads(arguments, max_bytes=32768))
    except UnsafeJson as unsafe:
        return Rejected(f"{unsafe.code} at {unsafe.path}: the arguments must be one plain JSON object")
    except ValidationError as invalid:
        return Rejected(f"invalid_arguments: {why_invalid(invalid)}")
    fields = parsed.model_dump(mode="json")
    return Checked(known, fields, fields[known.resource] if known.resource else None)


def must_exist(checked: Checked) -> bool:
    """Whether the target is looked up before a person is asked: a read finds out by itself (A2)."""
    return checked.action.effect == "write" and checked.resource is not None


def after_lost_lease(fence: int, may_replay: bool) -> Literal["pending", "unknown"]:
    """A lost claim may have had its effect. Only a key that the provider honours makes another attempt harmless (E4)."""
    return "pending" if may_replay and fence < MOST_CLAIMS else "unknown"


def after_nothing_sent(fence: int) -> Literal["pending", "failed"]:
    """Nothing left for the provider: another worker may try, but not for ever."""
    return "pending" if fence < MOST_CLAIMS else "failed"


def unsent_for_good(uncertain: str) -> Literal["failed", "unknown"]:
    """How a command ends that no worker could send: not as failed when an earlier worker may have had the effect."""
    return "unknown" if uncertain else "failed"


def end_of_unclaimed(state: Literal["denied", "expired"], reason: str, uncertain: str) -> tuple[Outcome, str]:
    """How a command ends that will not be claimed any more: an effect that may have happened is not denied away (E4)."""
    return ("unknown", f"{uncertain}; and {reason}") if uncertain else (state, reason)
