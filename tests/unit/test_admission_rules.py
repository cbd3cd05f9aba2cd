"""Admission's pure rules: what a tool call must be, and what becomes of a claim (A1, A2, A8, E4)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.admission.domain import (
    MOST_CLAIMS,
    Checked,
    Rejected,
    after_lost_lease,
    after_nothing_sent,
    check,
    must_exist,
)
from placet.contracts.actions import ACTIONS

NOTE = {"customer_id": "C-42", "body": "hello"}


def checked(action: str, **arguments: Any) -> Checked:
    found = check(action, json.dumps(arguments))
    assert isinstance(found, Checked)
    return found


def reason(arguments: str | dict[str, Any], action: str = "crm.note.create") -> str:
    """Why a call is rejected."""
    rejected = check(action, arguments if isinstance(arguments, str) else json.dumps(arguments))
    assert isinstance(rejected, Rejected)
    return rejected.reason


@pytest.mark.req("A1")
def test_a_proper_call_is_checked_with_its_target() -> None:
    note = checked("crm.note.create", **NOTE)
    assert (note.action.name, note.arguments, note.resource) == ("crm.note.create", NOTE, "C-42")
    assert checked("crm.export", format="csv").resource is None


@pytest.mark.req("A1", "T14")
@pytest.mark.parametrize("action", ["crm.customer.merge", "crm_note_create", "CRM.NOTE.CREATE", "crm.note.create ", ""])
def test_b34_an_unknown_action_is_refused_with_those_that_there_are(action: str) -> None:
    told = reason(NOTE, action)
    assert told.startswith("unknown_action")
    assert all(name in told for name in ACTIONS)


@pytest.mark.req("A1", "T14")
@pytest.mark.parametrize("extra", ["approved", "tenant_id", "principal", "idempotency_key", "Body"])
def test_b34_an_unknown_property_is_refused_by_name(extra: str) -> None:
    told = reason(NOTE | {extra: True})
    assert told.startswith("invalid_arguments")
    assert f"{extra}: " in told


@pytest.mark.req("A1")
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"body": None}, "body"),
        ({"body": 7}, "body"),
        ({"body": ["hello"]}, "body"),
        ({"body": ""}, "body"),
        ({"body": "x" * 2001}, "body"),
        ({"customer_id": 42}, "customer_id"),
        ({"customer_id": ""}, "customer_id"),
        ({"customer_id": "x" * 65}, "customer_id"),
        ({"customer_id": "../t2/customers/C-1"}, "customer_id"),
        ({"customer_id": "..%2f"}, "customer_id"),
        ({"customer_id": ".."}, "customer_id"),
        ({"customer_id": "C-42\n"}, "customer_id"),
        ({"customer_id": "C 42"}, "customer_id"),
    ],
)
def test_a_wrong_or_overlong_value_is_refused_at_its_path(changed: dict[str, Any], named: str) -> None:
    told = reason(NOTE | changed)
    assert told.startswith(f"invalid_arguments: {named}: ")


@pytest.mark.req("A1")
def test_of_very_many_faults_the_first_are_named_so_that_the_reason_can_be_said() -> None:
    """A reason travels in messages, which have a size; the call would else never get its result."""
    said = reason(NOTE | {"x" * 5000: 1} | {f"odd{number}": 1 for number in range(1999)})
    assert "odd1: Extra inputs" in said
    assert said.endswith("and 1992 more")
    assert len(said) < 2100


@pytest.mark.req("A1")
def test_every_fault_is_named_at_once() -> None:
    told = reason({"customer_id": "C-42", "text": "hello"})
    assert "body: " in told
    assert "text: " in told


@pytest.mark.req("A3")
@pytest.mark.parametrize("identifier", ["caf" + "e\u0301", "caf\u00e9", "\uff23-42", "\u0421-42"])
def test_b27_an_identifier_that_is_not_ascii_is_refused_and_never_folded(identifier: str) -> None:
    assert reason(NOTE | {"customer_id": identifier}).startswith("invalid_arguments: customer_id")


@pytest.mark.req("A3")
@pytest.mark.parametrize("body", ["caf\u00e9", "cafe\u0301", " spaces ", "😀＠", "a\r\nb"])
def test_b27_free_text_keeps_its_bytes(body: str) -> None:
    assert checked("crm.note.create", customer_id="C-42", body=body).arguments["body"].encode() == body.encode()


@pytest.mark.req("A1", "A3")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ('{"customer_id":"C-42","body":"a","body":"b"}', "duplicate_key at $.body"),
        ('{"customer_id":"C-42","body":"a","bod\\u0079":"b"}', "duplicate_key at $.body"),
        ('{"customer_id":"C-42","body":{"b":1,"b":2}}', "duplicate_key at $.body.b"),
        ('{"customer_id":"C-42","body":"\\ud800"}', "lone_surrogate at $.body"),
        ('{"customer_id":"C-42","body":"\\u0000"}', "nul_character at $.body"),
        ('{"customer_id":"C-42","body":1e400}', "number_out_of_range at $.body"),
        ('{"customer_id":"C-42","body":' + "1" * 5000 + "}", "number_out_of_range at $.body"),
        ('{"customer_id":"C-42","body":NaN}', "not_a_number"),
        ('{"customer_id":"C-42","body":' + "[" * 40 + "]" * 40 + "}", "too_deep"),
        ('{"customer_id":"C-42","body":"' + "x" * 32768 + '"}', "too_large"),
        ('{"customer_id":"C-42"', "not_json"),
        ("", "not_json"),
    ],
)
def test_b29_arguments_that_two_readers_could_read_differently_are_refused(arguments: str, code: str) -> None:
    told = reason(arguments)
    assert told.startswith(code)
    assert "one plain JSON object" in told


@pytest.mark.req("A1")
@pytest.mark.parametrize("arguments", ["null", "[]", '"text"', "7", "{}"])
def test_arguments_of_another_shape_are_refused(arguments: str) -> None:
    assert reason(arguments).startswith("invalid_arguments: ")


@pytest.mark.req("A1")
@given(st.sampled_from(sorted(ACTIONS)), st.text() | st.text('{}[]":,0123456789eE.\\ud customer_id'))
def test_whatever_the_model_writes_is_rejected_with_a_reason(action: str, arguments: str) -> None:
    found = check(action, arguments)
    assert isinstance(found, Rejected)
    assert found.reason


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (checked("crm.note.create", **NOTE), True),
        (checked("crm.note.delete", customer_id="C-42", note_id="note_1"), True),
        (checked("crm.customer.get", customer_id="C-42"), False),
        (checked("crm.export", format="json"), False),
    ],
)
def test_the_target_of_a_write_is_looked_up_before_anybody_is_asked(call: Checked, expected: bool) -> None:
    assert must_exist(call) is expected


@pytest.mark.req("E3", "E4", "A8")
def test_a_lost_claim_is_repeated_only_with_a_key_that_the_provider_honours_and_not_for_ever() -> None:
    assert {after_lost_lease(fence, True) for fence in range(1, MOST_CLAIMS)} == {"pending"}
    assert after_lost_lease(MOST_CLAIMS, True) == "unknown"
    assert {after_lost_lease(fence, False) for fence in range(1, MOST_CLAIMS + 2)} == {"unknown"}


@pytest.mark.req("A8")
def test_what_never_left_is_tried_again_but_not_for_ever() -> None:
    assert {after_nothing_sent(fence) for fence in range(1, MOST_CLAIMS)} == {"pending"}
    assert {after_nothing_sent(fence) for fence in (MOST_CLAIMS, MOST_CLAIMS + 1)} == {"failed"}
