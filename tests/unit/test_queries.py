"""SQL in named files: named parameters become numbered ones, and a wrong set of values is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.service.database import load_queries, parse_query

OWNERS = ["placet.ingress", "placet.planner", "placet.permission", "placet.admission", "placet.messaging"]


def test_named_parameters_are_numbered_by_first_use() -> None:
    query = parse_query("q", "select :b, :a, :b where x = :long_name2")
    assert (query.text, query.parameters) == ("select $1, $2, $1 where x = $3", ("b", "a", "long_name2"))
    assert query.bind({"a": 1, "b": 2, "long_name2": 3}) == (2, 1, 3)


def test_the_order_of_a_batch_is_a_parameter() -> None:
    assert parse_query("q", "-- What it does.\n-- In the order of :a\nselect :b, :a").order == "a"
    assert parse_query("q", "select :a").order == ""
    with pytest.raises(ValueError, match="in the order of c"):
        parse_query("q", "-- In the order of :c\nselect :a")


@pytest.mark.parametrize(
    "text",
    [
        "select 'x'::text",
        "select $1::jsonb",
        "select a::int[]",
        "select '10:20'",
        "select a[1:n]",
        "select now()::date::text",
    ],
)
def test_what_is_no_parameter_stays_as_it_is(text: str) -> None:
    query = parse_query("q", text)
    assert (query.text, query.parameters) == (text, ())


def test_a_parameter_may_be_cast() -> None:
    query = parse_query("q", "select :calls::jsonb, (:at)::timestamptz, :promises::promise[]")
    assert query.text == "select $1::jsonb, ($2)::timestamptz, $3::promise[]"


def test_lines_of_comment_are_no_code() -> None:
    query = parse_query("q", "-- what it does: takes :nothing\nselect :a\n  -- :neither\nfrom x")
    assert (query.text, query.parameters) == ("select $1\nfrom x", ("a",))


@pytest.mark.parametrize("values", [{}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 2}])
def test_a_missing_or_an_extra_value_is_refused_by_name(values: dict[str, int]) -> None:
    query = parse_query("move_money", "select :a, :b")
    with pytest.raises(TypeError, match=r"move_money takes \['a', 'b'\]"):
        query.bind(values)


NAMES = st.lists(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), min_size=1, max_size=12)


@given(NAMES)
def test_every_value_arrives_at_its_own_place(names: list[str]) -> None:
    query = parse_query("q", "select " + ", ".join(f":{name}" for name in names))
    values = query.bind({name: name for name in names})
    numbers = [int(part.removeprefix("$")) for part in query.text.removeprefix("select ").split(", ")]
    assert [values[number - 1] for number in numbers] == names


@pytest.mark.parametrize("owner", OWNERS)
def test_every_query_that_ships_is_read_under_the_name_of_its_file(owner: str) -> None:
    found = load_queries(owner)
    assert found
    for name, query in found.items():
        assert query.name == name
        assert "--" not in query.text
        assert query.text.count("$") >= len(query.parameters)
