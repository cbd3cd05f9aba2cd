"""Strict JSON: what two readers could understand in two ways is refused, with a code and the path that offends."""

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.canonical import UnsafeJson, strict_loads

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SAFE = st.integers(-(2**53) + 1, 2**53 - 1)
NUMBERS = SAFE | st.floats(-(2.0**52), 2.0**52)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def refusal(text: bytes | str, **limits: int) -> tuple[str, str]:
    """The code and the path by which a document is refused."""
    with pytest.raises(UnsafeJson) as caught:
        strict_loads(text, **limits)
    return caught.value.code, caught.value.path


@pytest.mark.req("A3")
@given(VALUES)
def test_a_proper_document_is_read_as_every_reader_reads_it(value: Any) -> None:
    assert strict_loads(json.dumps(value)) == value
    assert strict_loads(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b'{"to":"acc-1","amount_minor":10,"amount_minor":10000}', "$.amount_minor"),
        (b'{"a":{"b":1,"b":2}}', "$.a.b"),
        (b'{"amount_minor":10,"amount\\u005fminor":10000}', "$.amount_minor"),
        (b'[{"a":1},{"x":{},"x":{}}]', "$[1].x"),
        (b'{"a":1,"a":1}', "$.a"),
        (b'{"":1,"":2}', "$."),
    ],
)
def test_b29_a_repeated_key_is_refused_at_its_path(text: bytes, path: str) -> None:
    assert refusal(text) == ("duplicate_key", path)


@pytest.mark.req("A3")
@given(st.dictionaries(TEXT, st.integers(0, 9), min_size=1, max_size=8), st.data())
def test_b29_any_repeated_key_is_refused_however_it_is_written(document: dict[str, int], data: st.DataObject) -> None:
    repeated = data.draw(st.sampled_from(sorted(document)))
    escaped = json.dumps(repeated, ensure_ascii=data.draw(st.booleans()))
    text = json.dumps(document)[:-1] + f",{escaped}:0}}"
    assert refusal(text)[0] == "duplicate_key"


@pytest.mark.req("A3")
def test_b29_a_long_document_with_a_repeated_key_costs_no_more_than_reading_it() -> None:
    class Counted(str):
        __slots__ = ()
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    from placet.canonical import strict

    names = [Counted(f"k{index}") for index in range(1000)]
    find = strict._pairs  # pyright: ignore[reportPrivateUsage]
    found = find([(name, 1) for name in (*names, Counted("z"), Counted("z"))])
    assert found == strict._Repeated("z")  # pyright: ignore[reportPrivateUsage]
    assert Counted.compared < 10 * len(names)


@pytest.mark.req("A3")
@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_constant_that_is_no_number_is_refused_at_its_path(constant: str) -> None:
    assert refusal(f'{{"a":[1,{constant}]}}') == ("not_a_number", "$.a[1]")


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    "number", ["1e400", "-1e400", "9007199254740992", "-9007199254740992", "1e16", "1" * 400, "1" * 5000]
)
def test_a_number_that_readers_could_read_differently_is_refused(number: str) -> None:
    assert refusal(f'{{"n":[{number}]}}') == ("number_out_of_range", "$.n[0]")


@pytest.mark.req("A3")
@given(st.integers(0, 60000).map(lambda digits: "9" * digits) | st.integers().map(str) | st.floats().map(repr))
def test_a_number_is_read_or_refused_and_nothing_else_happens(number: str) -> None:
    code = ""
    try:
        assert math.isfinite(strict_loads(number))
    except UnsafeJson as unsafe:
        code = unsafe.code
    assert code in ("", "number_out_of_range", "not_a_number", "not_json")


@pytest.mark.req("A3")
def test_the_borders_of_safe_integers_are_inside() -> None:
    assert strict_loads("[9007199254740991,-9007199254740991]") == [2**53 - 1, -(2**53) + 1]


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('{"a":"\\ud800"}', ("lone_surrogate", "$.a")),
        ('{"a":"\\udc00\\ud800"}', ("lone_surrogate", "$.a")),
        ('{"a":{"\\ud83d":1}}', ("lone_surrogate", "$.a")),
        ('{"a":["x","y\\u0000"]}', ("nul_character", "$.a[1]")),
        ('{"b":{"\\u0000":1}}', ("nul_character", "$.b")),
        ('{"\\u0000duplicate":1}', ("nul_character", "$")),
    ],
)
def test_text_that_cannot_be_stored_or_compared_is_refused_in_values_and_keys(text: str, refused: tuple[str, str]) -> None:
    assert refusal(text) == refused


def test_a_proper_surrogate_pair_is_one_character() -> None:
    assert strict_loads('"\\ud83d\\ude00"') == "\U0001f600"


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_is_counted_from_the_outermost_value(opening: str) -> None:
    closing = {"[": "]", '{"a":': "}"}[opening]
    assert strict_loads(opening * 3 + "1" + closing * 3, max_depth=3) is not None
    code, path = refusal(opening * 4 + "1" + closing * 4, max_depth=3)
    assert (code, path) == ("too_deep", {"[": "$[0][0][0]", '{"a":': "$.a.a.a"}[opening])


@pytest.mark.parametrize("text", ["[" * 60000, '{"a":' * 12000])
def test_a_document_deeper_than_the_reader_can_go_is_refused(text: str) -> None:
    assert refusal(text)[0] in ("too_deep", "not_json")


def test_size_is_counted_in_bytes() -> None:
    text = '"' + "é" * 9 + '"'
    assert strict_loads(text, max_bytes=20) == "é" * 9
    assert refusal(text, max_bytes=19) == ("too_large", "$")
    assert refusal(text.encode(), max_bytes=19) == ("too_large", "$")


@pytest.mark.parametrize("text", [b'"\xff"', b'"\xed\xa0\x80"', '"\ud800"'])
def test_bytes_that_are_not_utf8_are_refused(text: bytes | str) -> None:
    assert refusal(text) == ("not_utf8", "$")


@pytest.mark.parametrize("text", ["", "{", "{not json", "[1,]", "{'a':1}", "01", "+1", ".5", '"\t"', "[1] 2", "\ufeff{}"])
def test_what_is_no_json_is_refused(text: str) -> None:
    assert refusal(text)[0] == "not_json"


@pytest.mark.req("A3")
@given(st.binary() | st.text() | st.text('{}[]":,0123456789eE+-.\\untrflsa \ud800\0'))
def test_whatever_comes_is_read_or_refused(text: bytes | str) -> None:
    with suppress(UnsafeJson):
        strict_loads(text)
