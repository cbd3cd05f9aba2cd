"""Whatever the model asks for, and in whatever order outcomes come, the planner's laws hold (T3, T4, T5, T6)."""

import json
from dataclasses import replace
from itertools import takewhile
from typing import cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from placet.contracts.turns import CALL_ENDS, Outcome
from placet.planner.domain import Call, Change, Turn, replied, settled
from placet.planner.model import CallAsked, Reply

TOOLS = st.sampled_from(["crm_customer_get", "crm_export", "crm_note_create", "crm_note_delete", "no_such_tool"])
OUTCOMES = st.sampled_from(sorted(CALL_ENDS - {"skipped"}))
UNDER_WAY = ("proposed", "awaiting_approval")


class Conversation(RuleBasedStateMachine):
    """A turn in the hands of a wild model and of outcomes in any order, some of them delivered again."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = Turn("t1", "turn_1", "c1", "alice", "00", "planning", "", 1, 0, 1, ())
        self.results: dict[str, str | None] = {}
        self.messages: list[list[str]] = []
        self.proposed: list[str] = []
        self.positions: list[int] = [0]

    def apply(self, change: Change) -> None:
        """Store a change as the store would."""
        for said in change.said:
            self.positions.append(said.position)
            if said.tool_call_id:
                assert said.tool_call_id not in self.results, "a second result for one call"
                self.results[said.tool_call_id] = said.outcome
        for call in change.propose:
            assert call.tool_call_id not in self.proposed, "a call is proposed twice"
            self.proposed.append(call.tool_call_id)
        calls = [replace(call, state=change.states.get(call.tool_call_id, call.state)) for call in self.turn.calls]
        position = self.turn.next_position + len(change.said)
        self.turn = replace(self.turn, state=change.state, calls=(*calls, *change.called), next_position=position)

    def effects(self, message: list[str]) -> list[Call]:
        """The calls with effects of one message, in the model's order."""
        return [call for call in self.turn.calls if call.effect == "write" and call.tool_call_id in message]

    @precondition(lambda self: self.turn.state == "planning")
    @rule(tools=st.lists(TOOLS, min_size=1, max_size=6))
    def the_model_asks(self, tools: list[str]) -> None:
        assert all(call.state in CALL_ENDS for call in self.turn.calls), "the model was asked too early"
        fresh = [f"k{len(self.turn.calls) + index}" for index in range(len(tools))]
        self.messages.append(fresh)
        self.apply(replied(self.turn, Reply("", tuple(CallAsked("call_0", tool, "{}") for tool in tools)), fresh))

    @precondition(lambda self: any(call.state == "proposed" for call in self.turn.calls))
    @rule(data=st.data())
    def a_card_comes(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from([call for call in self.turn.calls if call.state == "proposed"]))
        calls = [replace(call, state="awaiting_approval") if call is asked else call for call in self.turn.calls]
        self.turn = replace(self.turn, calls=tuple(calls))

    @precondition(lambda self: any(call.state in UNDER_WAY for call in self.turn.calls))
    @rule(data=st.data(), outcome=OUTCOMES)
    def an_outcome_comes(self, data: st.DataObject, outcome: str) -> None:
        waiting = [call.tool_call_id for call in self.turn.calls if call.state in UNDER_WAY]
        change = settled(self.turn, data.draw(st.sampled_from(waiting)), cast("Outcome", outcome), {"n": 1})
        assert change is not None
        self.apply(change)

    @precondition(lambda self: self.results)
    @rule(data=st.data(), outcome=OUTCOMES)
    def an_outcome_comes_again(self, data: st.DataObject, outcome: str) -> None:
        again = data.draw(st.sampled_from(sorted(self.results)))
        assert settled(self.turn, again, cast("Outcome", outcome), {}) is None

    @invariant()
    def every_call_that_has_ended_has_its_one_result_and_no_other_has_one(self) -> None:
        for call in self.turn.calls:
            assert (call.state in CALL_ENDS) == (call.tool_call_id in self.results)
            assert self.results.get(call.tool_call_id, call.state) == call.state

    @invariant()
    def no_two_effects_are_open(self) -> None:
        assert sum(call.state in UNDER_WAY for call in self.turn.calls if call.effect == "write") <= 1

    @invariant()
    def effects_of_a_message_keep_its_order_and_end_with_the_first_that_does_not_succeed(self) -> None:
        for message in self.messages:
            states = [call.state for call in self.effects(message)]
            done = len(list(takewhile(lambda state: state == "succeeded", states)))
            after = set(states[done + 1 :])
            stopped = states[done:] and states[done] in CALL_ENDS
            assert after <= ({"skipped"} if stopped else {"waiting"})
            assert "skipped" not in states[: done + 1], "skipped although every effect before it in its message succeeded"

    @invariant()
    def no_read_waits(self) -> None:
        assert all(call.state != "waiting" for call in self.turn.calls if call.effect == "read")

    @invariant()
    def something_is_always_under_way(self) -> None:
        open_calls = [call for call in self.turn.calls if call.state not in CALL_ENDS]
        assert self.turn.state == ("executing" if open_calls else "planning")
        assert not open_calls or any(call.state in UNDER_WAY for call in open_calls)

    @invariant()
    def positions_have_no_gap_and_no_repetition(self) -> None:
        assert self.positions == list(range(len(self.positions)))

    def teardown(self) -> None:
        """Let everything end: then each call that was ever asked for has exactly one result."""
        while open_calls := [call for call in self.turn.calls if call.state in UNDER_WAY]:
            change = settled(self.turn, open_calls[-1].tool_call_id, "succeeded", json.dumps({}))
            assert change is not None
            self.apply(change)
        assert sorted(self.results) == sorted(call for message in self.messages for call in message)


@pytest.mark.req("T3", "T4", "T5", "T6")
class TestConversation(Conversation.TestCase):
    settings = settings(max_examples=100, stateful_step_count=25)
