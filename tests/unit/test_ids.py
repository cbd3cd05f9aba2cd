"""Identifiers: ordered by time, readable by their prefix, and unguessable where a person may answer them."""

import re
import uuid

import pytest
from pydantic import TypeAdapter, ValidationError

from placet.contracts.ids import Id, new_id, new_secret_id

READ = TypeAdapter[str](Id)


def uuid_of(identifier: str) -> uuid.UUID:
    return uuid.UUID(hex=identifier.partition("_")[2])


def test_an_id_is_a_uuid7_behind_its_prefix() -> None:
    made = new_id("turn")
    assert re.fullmatch(r"turn_[0-9a-f]{32}", made)
    assert (uuid_of(made).version, uuid_of(made).variant) == (7, uuid.RFC_4122)


def test_ids_are_ordered_by_the_time_of_their_making(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    for millisecond in (0, 1, 255, 256, 1_700_000_000_000, 1_700_000_000_001, 2**48 - 1):
        monkeypatch.setattr("placet.contracts.ids.time.time_ns", lambda at=millisecond: at * 1_000_000 + 999_999)
        made.append(new_id("op"))
        assert uuid_of(made[-1]).int >> 80 == millisecond
    assert made == sorted(made)


def test_ids_made_in_one_millisecond_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placet.contracts.ids.time.time_ns", lambda: 1_700_000_000_000_000_000)
    assert len({new_id("call") for _ in range(10_000)}) == 10_000


@pytest.mark.req("P2")
def test_what_a_person_may_answer_has_192_random_bits_and_no_time() -> None:
    made = [new_secret_id("apr") for _ in range(1000)]
    assert all(re.fullmatch(r"apr_[0-9a-f]{48}", each) for each in made)
    numbers = [int(each.partition("_")[2], 16) for each in made]
    for bit in range(192):
        assert 300 < sum(number >> bit & 1 for number in numbers) < 700, f"bit {bit} is not random"


@pytest.mark.parametrize("made", ["C-42", "turn_01", "a:b.c-d_e", "0", "x" * 128])
def test_an_identifier_on_the_wire_is_accepted(made: str) -> None:
    assert READ.validate_python(made) == made


def test_what_we_make_is_accepted_on_the_wire() -> None:
    for made in (new_id("turn"), new_secret_id("apr")):
        assert READ.validate_python(made) == made


@pytest.mark.parametrize(
    "made", ["", "-a", "_a", "x" * 129, "caf" + "e\u0301", "caf\u00e9", "a b", "a\n", "a/b", "a\0", "\uff21"]
)
def test_b27_an_identifier_has_one_form_only(made: str) -> None:
    with pytest.raises(ValidationError):
        READ.validate_python(made)
