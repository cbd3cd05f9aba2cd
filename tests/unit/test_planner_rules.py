"""The planner's pure rules: which calls go, which wait, which never run, and when the model is asked again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from placet.contracts.turns import CALL_ENDS, TURN_ENDS, Outcome
from placet.planner.domain import MOST_STEPS, Call, Change, Turn, failed, replied, settled
from placet.planner.model import CallAsked, Reply, Said

READ, WRITE = "crm_customer_get", "crm_note_create"
TURN = Turn("t1", "turn_1", "c1", "alice", "00", "planning", "", 3, 1, 10, ())
NOT_DONE = sorted(CALL_ENDS - {"succeeded"})


def asks(*tools: str, hint: str = "call_0") -> Reply:
    return Reply("", tuple(CallAsked(hint, tool, json.dumps({"n": index})) for index, tool in enumerate(tools)))


def after(turn: Turn, change: Change) -> Turn:
    """The turn as it is stored after a change."""
    calls = [replace(call, state=change.states.get(call.tool_call_id, call.state)) for call in turn.calls]
    return replace(
        turn,
        state=change.state,
        revision=turn.revision + 1,
        next_position=turn.next_position + len(change.said),
        calls=(*calls, *change.called),
    )


def called(*tools: str) -> tuple[Turn, Change]:
    """A turn whose model has just asked for these calls, k0, k1 and so on."""
    change = replied(TURN, asks(*tools), [f"k{index}" for index in range(len(tools))])
    return after(TURN, change), change


def ended(turn: Turn, *outcomes: tuple[str, str], result: Any = "{}") -> tuple[Turn, Change]:
    """The turn after these outcomes of calls, one after the other, and the last change."""
    change: Change | None = None
    for tool_call_id, outcome in outcomes:
        change = settled(turn, tool_call_id, cast("Outcome", outcome), result)
        assert change is not None
        turn = after(turn, change)
    assert change is not None
    return turn, change


def ids(calls: Sequence[Call]) -> list[str]:
    return [call.tool_call_id for call in calls]


def results(said: Sequence[Said]) -> dict[str | None, str | None]:
    return {each.tool_call_id: each.outcome for each in said}


@pytest.mark.req("T2")
def test_a_reply_with_calls_is_one_change_with_message_calls_and_proposals() -> None:
    _, change = called(READ, WRITE)
    assert change.said == (Said(10, "assistant", ""),)
    assert ids(change.called) == ["k0", "k1"]
    assert (change.state, ids(change.propose)) == ("executing", ["k0", "k1"])


def test_a_reply_without_calls_completes_the_turn() -> None:
    change = replied(TURN, Reply("All done."), [])
    assert (change.state, change.said, change.propose) == ("completed", (Said(10, "assistant", "All done."),), ())


@pytest.mark.req("T6")
def test_reads_go_side_by_side_and_do_not_wait_for_effects() -> None:
    _, change = called(WRITE, READ, WRITE, READ)
    assert ids(change.propose) == ["k0", "k1", "k3"]
    assert [call.state for call in change.called] == ["proposed", "proposed", "waiting", "proposed"]


@pytest.mark.req("T6")
def test_effects_go_one_at_a_time_in_the_models_order() -> None:
    turn, change = called(WRITE, WRITE, WRITE)
    assert ids(change.propose) == ["k0"]
    turn, change = ended(turn, ("k0", "succeeded"))
    assert (ids(change.propose), change.state) == (["k1"], "executing")
    turn, change = ended(turn, ("k1", "succeeded"))
    assert (ids(change.propose), change.state) == (["k2"], "executing")
    _, change = ended(turn, ("k2", "succeeded"))
    assert (change.propose, change.state) == ((), "planning")


@pytest.mark.req("T6")
@pytest.mark.parametrize("outcome", NOT_DONE)
def test_after_an_effect_that_did_not_succeed_the_later_ones_are_skipped_with_a_reason(outcome: str) -> None:
    turn, _ = called(WRITE, READ, WRITE, WRITE)
    turn, change = ended(turn, ("k0", outcome))
    assert change.propose == ()
    assert results(change.said) == {"k0": outcome, "k2": "skipped", "k3": "skipped"}
    for said in change.said[1:]:
        told = json.loads(said.text)
        assert told["status"] == "skipped"
        assert "not executed" in told["executed"]
        assert "earlier call" in told["reason"]
    assert change.state == "executing", "the read has no result yet"
    assert ended(turn, ("k1", "succeeded"))[1].state == "planning"


@pytest.mark.req("T6")
@pytest.mark.parametrize("outcome", NOT_DONE)
def test_an_effect_that_did_not_succeed_stops_nothing_in_a_later_message(outcome: str) -> None:
    turn, _ = ended(called(WRITE)[0], ("k0", outcome))
    turn = after(turn, replied(turn, asks(WRITE, WRITE), ["k1", "k2"]))
    _, change = ended(turn, ("k1", "succeeded"))
    assert (results(change.said), ids(change.propose)) == ({"k1": "succeeded"}, ["k2"])


@pytest.mark.req("T6")
@pytest.mark.parametrize("outcome", NOT_DONE)
def test_a_read_that_fails_stops_nothing(outcome: str) -> None:
    turn, _ = called(READ, WRITE, WRITE)
    turn, change = ended(turn, ("k0", outcome))
    assert (ids(change.propose), change.state) == ([], "executing")
    assert ids(ended(turn, ("k1", "succeeded"))[1].propose) == ["k2"]


@pytest.mark.req("T6")
def test_a_tool_that_nobody_knows_counts_as_an_effect() -> None:
    turn, change = called("no_such_tool", WRITE)
    assert ids(change.propose) == ["k0"]
    assert results(ended(turn, ("k0", "rejected"))[1].said)["k1"] == "skipped"


@pytest.mark.req("T3", "T4")
def test_b05_each_result_is_recorded_on_its_own_and_the_model_waits_for_the_last() -> None:
    turn, _ = called(READ, WRITE, READ)
    turn, first = ended(turn, ("k0", "succeeded"), result={"customer": "A"})
    turn, second = ended(turn, ("k2", "succeeded"), result="B")
    assert first.said == (Said(11, "tool", '{"customer":"A"}', "k0", "succeeded"),)
    assert second.said == (Said(12, "tool", "B", "k2", "succeeded"),)
    assert (first.state, second.state) == ("executing", "executing")
    _, third = ended(turn, ("k1", "succeeded"))
    assert (third.state, results(third.said)) == ("planning", {"k1": "succeeded"})


@pytest.mark.req("T3", "T5")
@pytest.mark.parametrize("first", sorted(CALL_ENDS))
@pytest.mark.parametrize("second", sorted(CALL_ENDS))
def test_a_call_has_exactly_one_result(first: str, second: str) -> None:
    turn, _ = called(READ, READ)
    turn, _ = ended(turn, ("k0", first))
    assert settled(turn, "k0", cast("Outcome", second), "again") is None


@pytest.mark.req("T5")
def test_an_outcome_of_a_call_of_another_turn_changes_nothing() -> None:
    turn, _ = called(READ)
    assert settled(turn, "k9", "succeeded", "{}") is None


@pytest.mark.req("T5")
def test_a_call_that_waits_has_no_result() -> None:
    turn, change = called(WRITE, WRITE)
    assert [said.role for said in change.said] == ["assistant"]
    assert [call.state for call in turn.calls] == ["proposed", "waiting"]


@pytest.mark.req("T13")
def test_b12_calls_with_one_hint_are_told_apart_by_our_own_ids() -> None:
    turn, change = called(WRITE, WRITE)
    assert [(call.hint, call.tool_call_id) for call in change.called] == [("call_0", "k0"), ("call_0", "k1")]
    turn, change = ended(turn, ("k0", "succeeded"))
    assert results(change.said) == {"k0": "succeeded"}
    assert [call.state for call in turn.calls] == ["succeeded", "proposed"]


@pytest.mark.req("T13")
def test_b12_a_hint_of_an_earlier_step_gives_nothing_to_a_later_one() -> None:
    turn, _ = ended(called(WRITE)[0], ("k0", "succeeded"))
    change = replied(turn, asks("crm_note_delete"), ["k1"])
    assert [(call.hint, call.state) for call in change.called] == [("call_0", "proposed")]
    assert results(ended(after(turn, change), ("k1", "denied"))[1].said) == {"k1": "denied"}


@pytest.mark.req("T6", "M2")
def test_the_same_question_gets_the_same_answer_on_every_delivery() -> None:
    tools = (WRITE, READ, WRITE, "no_such_tool")
    assert called(*tools) == called(*tools)
    turn, _ = called(*tools)
    assert settled(turn, "k0", "denied", {}) == settled(turn, "k0", "denied", {})


@pytest.mark.req("T4")
def test_the_recorded_call_is_proposed_as_the_model_wrote_it() -> None:
    raw = '{"customer_id":"C-42","body":"x"} and more'
    change = replied(TURN, Reply("", (CallAsked("a", READ, raw),)), ["k0"])
    assert [(call.action, call.arguments) for call in change.propose] == [("crm.customer.get", raw)]


def test_a_model_that_never_comes_to_an_end_is_stopped() -> None:
    assert replied(replace(TURN, steps=MOST_STEPS - 1), asks(READ), ["k0"]).state == "executing"
    change = replied(replace(TURN, steps=MOST_STEPS), asks(READ), ["k0"])
    assert (change.state, change.said, change.called, change.propose) == ("failed", (), (), ())
    assert str(MOST_STEPS) in change.reason
    assert replied(replace(TURN, steps=MOST_STEPS), Reply("Done."), []).state == "completed"


@pytest.mark.req("T11")
def test_a_failed_turn_says_why_and_takes_no_result_back() -> None:
    change = failed("the model failed")
    assert (change.state, change.reason, change.said, dict(change.states)) == ("failed", "the model failed", (), {})


@pytest.mark.req("T5")
@pytest.mark.parametrize("state", sorted(TURN_ENDS))
def test_a_late_result_is_recorded_and_does_not_wake_a_turn_that_has_ended(state: Any) -> None:
    turn = replace(called(WRITE, WRITE)[0], state=state)
    change = settled(turn, "k0", "succeeded", "{}")
    assert change is not None
    assert results(change.said) == {"k0": "succeeded"}
    assert (change.state, change.propose) == (state, ())
