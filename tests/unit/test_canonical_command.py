"""The canonical form and its digest: two commands are the same if, and only if, their canonical bytes are (A3, P10)."""

import hashlib
import json
from dataclasses import fields, replace
from typing import Any

import pytest
import rfc8785
from hypothesis import assume, given
from hypothesis import strategies as st

from placet.canonical import CanonicalCommand, command_digest, strict_loads

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-(2.0**52), 2.0**52)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(TEXT, VALUES, max_size=5)
COMMANDS = st.builds(
    CanonicalCommand,
    tenant=TEXT,
    principal=TEXT,
    action=TEXT,
    action_version=st.integers(1, 99),
    resource=st.none() | TEXT,
    arguments=ARGUMENTS,
    expected_revision=st.none() | TEXT,
)
NOTE = CanonicalCommand("t1", "alice", "crm.note.create", 1, "r-1", {"customer_id": "r-1", "body": "hello"}, "5")


def digest(command: CanonicalCommand) -> str:
    return command_digest(command.encode())


def sha256_of(text: str) -> str:
    """SHA-256 of the canonical form of a document, without the domain line."""
    return hashlib.sha256(rfc8785.dumps(strict_loads(text))).hexdigest()


def reordered(value: Any, shuffle: Any) -> Any:
    """The same value with the properties of every object in another order."""
    if isinstance(value, dict):
        items: list[tuple[str, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        shuffle(items)
        return {name: reordered(item, shuffle) for name, item in items}
    return [reordered(item, shuffle) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def as_told_apart(value: Any) -> str:
    """JSON that differs exactly when two values differ to a reader of JSON: 1 and 1.0 are one number, 1 and true are not."""
    plain = json.loads(
        json.dumps(value), parse_float=lambda text: int(float(text)) if float(text).is_integer() else float(text)
    )
    return json.dumps(plain, sort_keys=True)


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"😀":1,"＠":1}', "425159f5c1f0575fbcbf9d05a8f60cde3d040eae5166aa2136657564048651b6"),
        ('{"＠":1,"😀":1}', "425159f5c1f0575fbcbf9d05a8f60cde3d040eae5166aa2136657564048651b6"),
        ('{"x":"\\u00e9"}', "97f06f396a709c3a29824e1cc794eeb98e2d1a262d7d455439d286d42803f0fe"),
        ('{"x":"e\\u0301"}', "35f78b22a07442667ba77286cd2cccc03ee4dba5431d5bf183a3d3984a99e5b2"),
    ],
)
def test_b27_the_canonical_form_has_the_published_hash(text: str, expected: str) -> None:
    assert sha256_of(text) == expected


@pytest.mark.req("A3")
def test_b27_properties_are_ordered_by_utf16_units_in_a_command_too() -> None:
    encoded = replace(NOTE, arguments={"＠": 1, "😀": 1}).encode().decode()
    assert '"arguments":{"😀":1,"＠":1}' in encoded


@pytest.mark.req("A3", "P10")
def test_b27_composed_and_decomposed_text_are_two_commands_and_keep_their_bytes() -> None:
    composed, decomposed = (replace(NOTE, arguments={"body": body}) for body in ("caf\u00e9", "cafe\u0301"))
    assert digest(composed) != digest(decomposed)
    assert CanonicalCommand.decode(decomposed.encode()).arguments["body"] == "cafe\u0301"


@pytest.mark.req("A3")
@given(COMMANDS, st.randoms())
def test_the_order_of_properties_does_not_matter(command: CanonicalCommand, random: Any) -> None:
    other = replace(command, arguments=reordered(command.arguments, random.shuffle))
    assert digest(other) == digest(command)


@pytest.mark.req("A3", "P10")
@given(ARGUMENTS, ARGUMENTS)
def test_arguments_have_one_digest_exactly_when_they_are_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = as_told_apart(one) == as_told_apart(other)
    assert (digest(replace(NOTE, arguments=one)) == digest(replace(NOTE, arguments=other))) is same


@pytest.mark.req("A3", "P10")
@given(COMMANDS, COMMANDS, st.sampled_from([field.name for field in fields(CanonicalCommand)]))
def test_every_field_counts(command: CanonicalCommand, other: CanonicalCommand, name: str) -> None:
    assume(as_told_apart(getattr(command, name)) != as_told_apart(getattr(other, name)))
    assert digest(replace(command, **{name: getattr(other, name)})) != digest(command)


@pytest.mark.req("A3", "P10")
@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, "1"), (None, ""), ([], {}), ("a", "A"), ("a", "a ")])
def test_values_that_only_look_alike_are_other_commands(one: Any, other: Any) -> None:
    assert digest(replace(NOTE, arguments={"x": one})) != digest(replace(NOTE, arguments={"x": other}))


@pytest.mark.req("P10")
def test_no_revision_is_not_the_empty_revision() -> None:
    assert digest(replace(NOTE, expected_revision=None)) != digest(replace(NOTE, expected_revision=""))


@pytest.mark.req("A3")
@given(COMMANDS)
def test_what_was_encoded_is_decoded_as_it_was(command: CanonicalCommand) -> None:
    assert CanonicalCommand.decode(command.encode()) == command


@pytest.mark.req("A3")
@given(COMMANDS)
def test_encoding_again_gives_the_same_bytes(command: CanonicalCommand) -> None:
    assert CanonicalCommand.decode(command.encode()).encode() == command.encode()


@pytest.mark.req("A3")
def test_the_digest_is_over_the_domain_line_and_the_bytes() -> None:
    expected = hashlib.sha256(b"placet.command.v1\n" + NOTE.encode()).hexdigest()
    assert digest(NOTE) == f"sha256:{expected}"
    assert digest(NOTE) != "sha256:" + hashlib.sha256(NOTE.encode()).hexdigest()


@pytest.mark.req("A3")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, "\ud800"])
def test_a_value_that_the_form_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        replace(NOTE, arguments={"x": value}).encode()


@pytest.mark.parametrize("text", [b"{}", b"not json", b'{"tenant":"t1"}'])
def test_bytes_that_this_module_did_not_write_are_not_decoded(text: bytes) -> None:
    with pytest.raises((KeyError, ValueError)):
        CanonicalCommand.decode(text)
