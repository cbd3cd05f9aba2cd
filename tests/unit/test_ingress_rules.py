"""Ingress's pure rules: the state that users see, the key of a request, and how a refusal looks (T8, U1)."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from placet.contracts.turns import TURN_ENDS
from placet.ingress.domain import Problem, TurnRequest, idempotency_key, shown_turn

STATES = ["accepted", "planning", "executing", "awaiting_approval"]
CARDS = st.lists(st.sampled_from(["pending", "approved", "denied", "expired"]))
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='"'), min_size=1, max_size=255)


def shown_now(state: str, cards: Sequence[str], stalled: str | None = None, settled: Sequence[str] = ()) -> dict[str, Any]:
    """What users see of a turn whose cards are in these states: the first is about call_0."""
    turn = {"turn_id": "turn_1", "state": state, "reason": "", "stalled": stalled}
    views = [
        {"turn_id": "turn_1", "state": card, "card": {"tool_call_id": f"call_{number}"}} for number, card in enumerate(cards)
    ]
    of_another = {"turn_id": "turn_0", "state": "pending", "card": {"tool_call_id": "call_of_another"}}
    return shown_turn(turn, [*views, of_another], settled)


def shown(state: str, cards: Sequence[str], stalled: str | None = None, settled: Sequence[str] = ()) -> str:
    """The state alone."""
    return shown_now(state, cards, stalled, settled)["state"]


@pytest.mark.req("T8")
@given(st.sampled_from(sorted(TURN_ENDS)), CARDS)
def test_an_end_is_an_end_whatever_its_cards_say(state: str, cards: list[str]) -> None:
    assert shown(state, cards, stalled="why") == shown(state, cards) == state


@pytest.mark.req("T8")
@given(st.sampled_from(sorted(TURN_ENDS)), CARDS)
def test_a_turn_that_has_ended_does_not_stand_still(state: str, cards: list[str]) -> None:
    """The news that it can go on again may come after its end: they are two messages."""
    assert shown_now(state, cards, stalled="why")["stalled"] is None


@pytest.mark.req("T8")
@given(st.sampled_from(STATES), CARDS)
def test_a_turn_awaits_approval_exactly_while_a_card_is_open(state: str, cards: list[str]) -> None:
    if cards:
        assert (shown(state, cards) == "awaiting_approval") == ("pending" in cards)
    else:
        assert shown(state, cards) == state


@pytest.mark.req("T8")
@given(st.sampled_from(STATES), st.lists(st.sampled_from(["approved", "denied", "expired"]), min_size=1))
def test_what_is_decided_is_under_way_until_its_call_has_a_result(state: str, cards: list[str]) -> None:
    *before, last = [f"call_{number}" for number in range(len(cards))]
    assert shown(state, cards, settled=before) == "executing"
    assert shown(state, cards, settled=[*before, last]) == state


@pytest.mark.req("T8")
@given(st.sampled_from(STATES), CARDS)
def test_b17_a_turn_that_cannot_go_on_says_so_and_why(state: str, cards: list[str]) -> None:
    view = shown_now(state, cards, stalled="why")
    expected = ("awaiting_approval", "") if "pending" in cards else ("resume_failed", "why")
    assert (view["state"], view["reason"], view["stalled"]) == (*expected, "why")


@pytest.mark.req("U1")
@given(PRINTABLE)
def test_a_key_is_the_same_bare_or_quoted(key: str) -> None:
    assert idempotency_key(key) == idempotency_key(f' "{key}" ') == key


@pytest.mark.req("U1")
@pytest.mark.parametrize("header", [None, "", "  ", '""'])
def test_a_request_without_a_key_is_told_to_send_one(header: str | None) -> None:
    with pytest.raises(Problem) as caught:
        idempotency_key(header)
    assert (caught.value.status, caught.value.code) == (400, "idempotency_key_required")


@pytest.mark.req("U1")
@pytest.mark.parametrize("header", ["x" * 256, "caf\u00e9", "a\0b", "a\tb", "\x7f"])
def test_a_key_that_is_too_long_or_not_printable_ascii_is_refused(header: str) -> None:
    with pytest.raises(Problem) as caught:
        idempotency_key(header)
    assert (caught.value.status, caught.value.code) == (400, "idempotency_key_invalid")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
NAMES = st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,8}", fullmatch=True)


@pytest.mark.req("U1")
@given(NAMES, TEXTS, NAMES, TEXTS)
def test_two_requests_have_one_fingerprint_exactly_when_they_are_the_same(
    conversation: str | None, text: str, other_conversation: str | None, other_text: str
) -> None:
    one = TurnRequest(conversation_id=conversation, text=text)
    other = TurnRequest(conversation_id=other_conversation, text=other_text)
    assert (one.fingerprint() == other.fingerprint()) is (one == other)


def test_a_fingerprint_cannot_be_moved_between_conversation_and_text() -> None:
    requests = [
        TurnRequest(text="c1\nhello"),
        TurnRequest(conversation_id="c1", text="hello"),
        TurnRequest(text="\nc1\nhello"),
    ]
    assert len({request.fingerprint() for request in requests}) == 3


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": " \t\n\u00a0\u2003"},
        {"text": 7},
        {"text": "x" * 16001},
        {"text": "x", "tenant": "t2"},
        {"text": "x", "conversation_id": "é"},
    ],
)
def test_a_body_that_does_not_fit_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TurnRequest.model_validate(body)


@pytest.mark.req("U1")
def test_a_problem_is_a_document_for_machines_and_people() -> None:
    problem = Problem(409, "turn_in_progress", "one turn at a time", turn_id="turn_1")
    assert json.loads(json.dumps(problem.body())) == {
        "type": "urn:placet:problem:turn_in_progress",
        "title": "turn in progress",
        "status": 409,
        "code": "turn_in_progress",
        "detail": "one turn at a time",
        "turn_id": "turn_1",
    }
    assert "409" in str(problem)
    assert Problem(422, "duplicate_key", "twice", "$.text").body()["path"] == "$.text"
