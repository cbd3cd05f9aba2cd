"""The envelope of a message: what is written is read, and what cannot be read says why."""

import json
from contextlib import suppress
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.contracts.catalogue import CATALOGUE
from placet.contracts.commands import CommandReady, CommandReported
from placet.contracts.message import MAX_BYTES, Command, Event, Message, TooLarge, Unreadable, decode, wrap
from placet.contracts.permissions import DecisionSubmitted, PermissionDecided
from placet.contracts.turns import MessageView, ToolCallProposed, ToolCallSettled, ToolCallView, TurnAccepted, TurnChanged

KNOWN: dict[str, type[Message]] = {route.wire: route.message for route in CATALOGUE}

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,20}", fullmatch=True)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-(2.0**52), 2.0**52) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OUTCOMES = st.sampled_from(["succeeded", "rejected", "denied", "expired", "failed", "unknown", "skipped", "cancelled"])
VIEWS = st.builds(
    MessageView,
    position=st.integers(0, 99),
    text=TEXT,
    tool_call_id=st.none() | IDS,
    outcome=st.none() | OUTCOMES,
    tool_calls=st.lists(st.builds(ToolCallView, tool_call_id=IDS, action=TEXT, arguments=TEXT), max_size=2).map(tuple),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(TurnAccepted, turn_id=IDS, conversation_id=IDS, principal=IDS, text=TEXT, mandate=TEXT),
    st.builds(
        ToolCallProposed,
        turn_id=IDS,
        conversation_id=IDS,
        tool_call_id=IDS,
        principal=IDS,
        mandate=TEXT,
        action=TEXT,
        arguments=JSON.map(json.dumps),
    ),
    st.builds(
        ToolCallSettled,
        turn_id=IDS,
        conversation_id=IDS,
        tool_call_id=IDS,
        operation_id=st.none() | IDS,
        outcome=OUTCOMES,
        reason=TEXT,
        result=JSON,
    ),
    st.builds(
        TurnChanged,
        turn_id=IDS,
        conversation_id=IDS,
        revision=st.integers(1, 2**53 - 1),
        state=st.sampled_from(["planning", "executing", "completed"]),
        reason=TEXT,
        messages=st.lists(VIEWS, max_size=3).map(tuple),
    ),
    st.builds(DecisionSubmitted, interrupt_id=IDS, answer=JSON, authorization=TEXT),
    st.builds(
        PermissionDecided,
        interrupt_id=IDS,
        operation_id=IDS,
        turn_id=IDS,
        conversation_id=IDS,
        tool_call_id=IDS,
        action=TEXT,
        digest=st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True),
        decision=st.sampled_from(["approved", "denied", "expired"]),
        decided_by=TEXT,
        reason=TEXT,
        rule=TEXT,
        policy_version=TEXT,
        valid_until=st.datetimes(timezones=st.just(UTC)),
    ),
    st.builds(
        CommandReported, operation_id=IDS, fence=st.integers(1, 9), worker=TEXT, outcome=st.just("succeeded"), result=JSON
    ),
)


def written(message: Message, **changed: Any) -> dict[str, Any]:
    """An envelope as a document, with attributes changed; None takes one away."""
    envelope = wrap(message, source="admission", tenant="t1", conversation="c1", cause="msg_1", traceparent="")
    return {name: value for name, value in (json.loads(envelope.encode()) | changed).items() if value is not None}


def read(document: Any) -> Message:
    return decode(json.dumps(document).encode(), KNOWN).message


READY = CommandReady(operation_id="op_1", action="crm.note.create")
PROPOSED = ToolCallProposed(
    turn_id="turn_1",
    conversation_id="c1",
    tool_call_id="call_1",
    principal="alice",
    mandate="00",
    action="crm.note.create",
    arguments="{}",
)


@pytest.mark.req("M1")
@given(MESSAGES, st.tuples(TEXT, TEXT, TEXT, TEXT))
def test_what_was_encoded_is_decoded_as_it_was(message: Message, beside: tuple[str, str, str, str]) -> None:
    tenant, conversation, cause, traceparent = beside
    envelope = wrap(
        message, source="planner", tenant=tenant, conversation=conversation, cause=cause, traceparent=traceparent
    )
    assert decode(envelope.encode(), KNOWN) == envelope


@pytest.mark.req("M1")
def test_every_message_of_the_catalogue_is_an_event_or_a_command() -> None:
    assert all(issubclass(kind, Event | Command) for kind in KNOWN.values())


@pytest.mark.req("M1", "M4")
@pytest.mark.parametrize("kind", ["command.ready.v2", "nobody.knows.v1", None, 7, ["command.ready.v1"]])
def test_b45_an_unknown_type_is_unreadable_never_empty(kind: Any) -> None:
    with pytest.raises(Unreadable, match="unknown type"):
        read(written(READY, type=kind))


@pytest.mark.req("M1")
def test_b45_an_additional_field_of_an_event_or_of_the_envelope_is_ignored() -> None:
    document = written(READY, placetnews="2")
    document["data"]["more"] = {"unknown": True}
    assert read(document) == READY


@pytest.mark.req("M1", "M4")
def test_b45_an_additional_field_of_a_command_is_refused_by_name() -> None:
    document = written(PROPOSED)
    document["data"]["approved"] = True
    with pytest.raises(Unreadable, match="approved"):
        read(document)


@pytest.mark.req("M4")
def test_b29_a_repeated_key_in_a_message_is_unreadable() -> None:
    body = json.dumps(written(READY)).replace('"operation_id"', '"operation_id": "op_2", "operation\\u005fid"')
    with pytest.raises(Unreadable, match=r"duplicate_key at \$\.data\.operation_id"):
        decode(body.encode(), KNOWN)


@pytest.mark.req("M4")
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": None}, "specversion"),
        ({"id": None}, "id is missing"),
        ({"id": 7}, "id is missing"),
        ({"source": None}, "source is missing"),
        ({"source": "/elsewhere/admission"}, "none of ours"),
        ({"data": None}, "data is missing"),
        ({"data": []}, r"\$"),
        ({"data": {"operation_id": "op_1"}}, "action"),
        ({"data": {"operation_id": "op 1", "action": "x"}}, "operation_id"),
        ({"tenantid": 7}, "tenantid"),
        ({"tenantid": {"t": 1}}, "tenantid"),
        ({"conversationid": ["c1"]}, "conversationid"),
    ],
)
def test_an_envelope_that_is_not_whole_is_unreadable_with_the_reason(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read(written(READY, **changed))


@pytest.mark.req("M4")
def test_a_null_tenant_is_no_tenant_of_that_name() -> None:
    body = json.dumps(written(READY) | {"tenantid": None}).encode()
    with suppress(Unreadable):
        assert decode(body, KNOWN).tenant == ""


@pytest.mark.req("M4", "O3")
def test_the_reason_holds_no_value_of_the_message() -> None:
    document = written(PROPOSED)
    document["data"]["principal"] = "CANARY 123"
    with pytest.raises(Unreadable) as caught:
        read(document)
    assert "principal" in str(caught.value)
    assert "CANARY" not in str(caught.value)


@pytest.mark.req("M4")
@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        decode(body, KNOWN)


@pytest.mark.req("M4")
@given(st.dictionaries(st.sampled_from(sorted(written(READY))), JSON))
def test_an_envelope_with_any_attributes_is_read_or_unreadable(changed: dict[str, Any]) -> None:
    with suppress(Unreadable):
        assert isinstance(read(written(READY) | changed), CommandReady)


def test_a_message_too_large_to_be_forwarded_is_refused_at_the_sender() -> None:
    settled = ToolCallSettled(
        turn_id="t", conversation_id="c", tool_call_id="k", outcome="succeeded", result="x" * MAX_BYTES
    )
    with pytest.raises(TooLarge, match=r"tool_call\.settled\.v1"):
        written(settled)


@pytest.mark.req("P6", "O3")
def test_an_approvers_token_is_in_no_representation_of_the_message() -> None:
    submitted = DecisionSubmitted(interrupt_id="apr_1", answer={}, authorization="CANARY")
    assert "CANARY" not in repr(submitted)
    assert "CANARY" not in str(submitted)
