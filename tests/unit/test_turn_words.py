"""The words in which everybody speaks of the ends of turns and calls (T5, T8)."""

from typing import cast, get_args

import pytest

from placet.contracts.turns import CALL_ENDS, TURN_ENDS, Outcome, TurnState, told


@pytest.mark.req("T8")
def test_every_state_of_a_turn_is_an_end_or_goes_on() -> None:
    assert set(get_args(TurnState)) - TURN_ENDS == {"accepted", "planning", "executing", "awaiting_approval"}


@pytest.mark.req("T5", "E4")
@pytest.mark.parametrize("outcome", sorted(CALL_ENDS - {"succeeded"}))
def test_b50_the_model_is_told_the_status_the_reason_and_whether_it_was_done(outcome: str) -> None:
    said = told(cast("Outcome", outcome), "wrong record")
    assert (said["status"], said["reason"]) == (outcome, "wrong record")
    assert said["executed"] == ("it may or may not have been executed" if outcome == "unknown" else "it was not executed")
