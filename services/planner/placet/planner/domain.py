"""The loop as pure functions: from a turn as it was read, and what happened, to everything that this changes.

No clock, no randomness, no I/O: on every delivery the same question gets the same answer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from placet.contracts.actions import TOOLS
from placet.contracts.turns import CALL_ENDS, TURN_ENDS, Outcome, TurnAccepted, TurnState, told
from placet.planner.model import Reply, Said

MOST_STEPS = 24
"""A turn in which the model goes on asking for calls for longer than this has lost its way."""

MOST_REPLY = 32768
"""Characters of a reply at most, text and arguments together, as JSON: so much fits into every message that carries it."""

MOST_CALLS = 32

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the turn, under our own id. `position` is that of the assistant message that asked for it."""

    tool_call_id: str
    position: int
    hint: str
    action: str
    arguments: str
    effect: str
    state: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as it is stored."""

    tenant: str
    turn_id: str
    conversation_id: str
    principal: str
    mandate: str
    state: TurnState
    reason: str
    revision: int
    steps: int
    next_position: int
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What one step changes. Nothing of it happens if the turn is no longer as it was read."""

    state: TurnState
    reason: str = ""
    said: tuple[Said, ...] = ()
    called: tuple[Call, ...] = ()
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    propose: tuple[Call, ...] = ()


def replied(turn: Turn, reply: Reply, ids: Sequence[str]) -> Change:
    """The model has answered. `ids` are fresh tool call ids, one for each call (B12: the model's own may repeat)."""
    if not reply.calls:
        return Change("completed", said=(Said(turn.next_position, "assistant", reply.text),))
    if turn.steps >= MOST_STEPS:
        return failed(f"the model asked for calls {MOST_STEPS} times without coming to an end")
    calls = [
        Call(
            tool_call_id,
            turn.next_position,
            asked.hint,
            _action(asked.tool),
            asked.arguments,
            _effect(asked.tool),
            "waiting",
        )
        for tool_call_id, asked in zip(ids, reply.calls, strict=True)
    ]
    moved, skipped = _advance(calls)
    return Change(
        "executing",
        said=(Said(turn.next_position, "assistant", reply.text), *_results(skipped, turn.next_position + 1)),
        called=tuple(moved),
        propose=tuple(call for call in moved if call.state == "proposed"),
    )


def settled(turn: Turn, tool_call_id: str, outcome: Outcome, result: Any) -> Change | None:
    """A call has its outcome. None when it has one already, or is not of this turn: exactly one result (T5, G2)."""
    known = {call.tool_call_id: call for call in turn.calls}
    call = known.get(tool_call_id)
    if call is None or call.state in CALL_ENDS:
        return None
    if turn.state in TURN_ENDS:
        return Change(turn.state, turn.reason, (_result(turn, call, outcome, result),), states={tool_call_id: outcome})
    siblings = [each for each in turn.calls if each.position == call.position]
    before = [_in_state(each, outcome) if each is call else each for each in siblings]
    moved, skipped = _advance(before)
    own = _result(turn, call, outcome, result)
    states = {each.tool_call_id: each.state for each in moved if each.state != known[each.tool_call_id].state}
    return Change(
        "planning" if all(each.state in CALL_ENDS for each in moved) else "executing",
        said=(own, *_results(skipped, turn.next_position + 1)),
        states=states,
        propose=tuple(each for each in moved if states.get(each.tool_call_id) == "proposed"),
    )


def _result(turn: Turn, call: Call, outcome: Outcome, result: Any) -> Said:
    return Said(turn.next_position, "tool", _as_text(result), call.tool_call_id, outcome)


def unusable(reply: Reply) -> str | None:
    """Why a reply cannot even be recorded, or None: what PostgreSQL and JSON cannot carry, or arguments beyond any bound."""
    texts = [reply.text, *(part for call in reply.calls for part in (call.hint, call.tool, call.arguments))]
    if any("\0" in text or _LONE_SURROGATE.search(text) for text in texts):
        return "it holds characters that no text may hold"
    if len(reply.calls) > MOST_CALLS:
        return f"it asks for more than {MOST_CALLS} calls"
    if sum(len(json.dumps(text)) for text in texts) > MOST_REPLY:
        return f"it has more than {MOST_REPLY} characters"
    return None


def begun(tenant: str, accepted: TurnAccepted, position: int) -> Turn:
    """A turn just after its beginning, with the user's message at `position`."""
    return Turn(
        tenant=tenant,
        turn_id=accepted.turn_id,
        conversation_id=accepted.conversation_id,
        principal=accepted.principal,
        mandate=accepted.mandate,
        state="planning",
        reason="",
        revision=1,
        steps=0,
        next_position=position + 1,
        calls=(),
    )


def changed(turn: Turn, change: Change) -> Turn:
    """The turn after a change, as it would be read now."""
    calls = [_in_state(call, change.states.get(call.tool_call_id, call.state)) for call in turn.calls]
    return replace(
        turn,
        state=change.state,
        reason=change.reason,
        revision=turn.revision + 1,
        steps=turn.steps + sum(said.role == "assistant" for said in change.said),
        next_position=turn.next_position + len(change.said),
        calls=(*calls, *change.called),
    )


def failed(reason: str) -> Change:
    """The turn ends without an answer; results that are recorded stay (T11)."""
    return Change("failed", reason)


def _advance(calls: Sequence[Call]) -> tuple[list[Call], list[Call]]:
    """Which waiting calls may go now, and which never will (T6).

    Reads run side by side. Effects run in the model's order, one at a time; after one that did not succeed, none.
    """
    moved: list[Call] = []
    skipped: list[Call] = []
    blocked = stopped = False
    for call in calls:
        now = call
        if call.state == "waiting" and (call.effect == "read" or not (blocked or stopped)):
            now = _in_state(call, "proposed")
        elif call.state == "waiting" and stopped:
            now = _in_state(call, "skipped")
            skipped.append(now)
        if call.effect != "read":
            stopped = stopped or now.state in CALL_ENDS - {"succeeded"}
            blocked = blocked or now.state not in CALL_ENDS
        moved.append(now)
    return moved, skipped


def _results(skipped: Sequence[Call], position: int) -> tuple[Said, ...]:
    reason = "an earlier call with an effect did not succeed, so this one was not run"
    text = _as_text(told("skipped", reason))
    return tuple(Said(position + index, "tool", text, call.tool_call_id, "skipped") for index, call in enumerate(skipped))


def _in_state(call: Call, state: str) -> Call:
    return replace(call, state=state)


def _action(tool: str) -> str:
    return TOOLS[tool].name if tool in TOOLS else tool[:128]


def _effect(tool: str) -> str:
    """A tool that nobody knows counts as having an effect, until admission refuses it."""
    return TOOLS[tool].effect if tool in TOOLS else "write"


def _as_text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, separators=(",", ":"))
