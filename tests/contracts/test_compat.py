"""Seeded changes: those that break a reader somewhere are refused with their path, and the harmless ones pass."""

import copy
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from placet.contracts.compat import breaks
from placet.contracts.message import Command, Event, Message
from placet.contracts.schemas import all_schemas, message_schema


class Line(BaseModel):
    name: str
    count: int = Field(default=1, ge=0)
    inner: "Line | None" = None


class Told(Event):
    wire = "thing.told.v1"
    thing_id: str = Field(max_length=64, pattern="^[a-z]+$")
    state: Literal["open", "shut"] = "open"
    size: int = Field(ge=1, le=10)
    only: Literal["this"] = "this"
    note: str | None = None
    lines: tuple[Line, ...] = ()
    extra: dict[str, int] = Field(default_factory=dict)


class Asked(Command):
    wire = "thing.asked.v1"
    thing_id: str = Field(max_length=64)
    line: Line
    reason: str = ""


Change = Callable[[dict[str, Any]], object]


def broken(message: type[Message], change: Change) -> list[tuple[str, str]]:
    released = message_schema(message)
    current = copy.deepcopy(released)
    change(current)
    return [(found.path, found.rule) for found in breaks(message.wire, released, current)]


def field(name: str, **keywords: Any) -> Change:
    """A change of the keywords of one field."""
    return lambda schema: schema["properties"][name].update(keywords)


def line(name: str, **keywords: Any) -> Change:
    return lambda schema: schema["$defs"]["Line"]["properties"].setdefault(name, {}).update(keywords)


def renamed(schema: dict[str, Any]) -> None:
    schema["properties"]["thing"] = schema["properties"].pop("thing_id")
    schema["required"] = ["thing", "size"]


def without_null(schema: dict[str, Any]) -> None:
    schema["properties"]["note"] = {"type": "string", "default": None}


def with_a_third_kind(schema: dict[str, Any]) -> None:
    schema["properties"]["note"]["anyOf"].append({"type": "integer"})


def with_two_values(schema: dict[str, Any]) -> None:
    schema["properties"]["only"] = {"enum": ["this", "that"], "type": "string", "default": "this"}


REFUSED_IN_AN_EVENT: dict[str, tuple[Change, tuple[str, str]]] = {
    "a field is removed": (lambda schema: schema["properties"].pop("note"), ("$.note", "removed")),
    "a field is renamed": (renamed, ("$.thing_id", "removed")),
    "a type changes": (field("size", type="number"), ("$.size", "type")),
    "a text gets shorter": (field("thing_id", maxLength=32), ("$.thing_id", "narrowed")),
    "a text gets a least length": (field("thing_id", minLength=1), ("$.thing_id", "narrowed")),
    "a least value rises": (field("size", minimum=2), ("$.size", "narrowed")),
    "a greatest value falls": (field("size", maximum=9), ("$.size", "narrowed")),
    "a pattern changes": (field("thing_id", pattern="^[a-z0-9]+$"), ("$.thing_id", "pattern")),
    "a pattern appears": (field("state", pattern="^o"), ("$.state", "pattern")),
    "a format appears": (field("thing_id", format="uuid"), ("$.thing_id", "format")),
    "an enum loses a value": (field("state", enum=["open"]), ("$.state", "enum")),
    "an enum gains a value": (field("state", enum=["open", "shut", "ajar"]), ("$.state", "enum")),
    "a single value becomes two": (with_two_values, ("$.only", "enum")),
    "a constant changes": (field("only", const="that"), ("$.only", "enum")),
    "a default changes": (field("state", default="shut"), ("$.state", "default")),
    "a field becomes required": (lambda schema: schema["required"].append("note"), ("$.note", "required")),
    "a new field is required": (lambda schema: schema["required"].append("new"), ("$.new", "required")),
    "a field becomes optional": (lambda schema: schema["required"].remove("size"), ("$.size", "optional")),
    "null is no longer allowed": (without_null, ("$.note", "type")),
    "a union grows": (with_a_third_kind, ("$.note", "type")),
    "an open message closes": (lambda schema: schema.update(additionalProperties=False), ("$", "closed")),
    "a map holds other values": (field("extra", additionalProperties={"type": "string"}), ("$.extra.*", "type")),
    "a map takes anything": (field("extra", additionalProperties=True), ("$.extra", "changed")),
    "a list holds other things": (field("lines", items={"type": "string"}), ("$.lines[]", "type")),
    "a type changes deep inside": (line("name", type="integer"), ("$.lines[].name", "type")),
    "a bound narrows deep inside": (line("count", minimum=1), ("$.lines[].count", "narrowed")),
    "an unknown keyword appears": (field("size", multipleOf=2), ("$.size", "changed")),
}

REFUSED_IN_A_COMMAND: dict[str, tuple[Change, tuple[str, str]]] = {
    "an optional field is added": (
        lambda schema: schema["properties"].update(new={"type": "string", "default": ""}),
        ("$.new", "added"),
    ),
    "an optional field is added deep inside": (line("new", type="string"), ("$.line.new", "added")),
    "a closed message opens": (lambda schema: schema.pop("additionalProperties"), ("$", "opened")),
    "a field is removed": (lambda schema: schema["properties"].pop("reason"), ("$.reason", "removed")),
    "a type changes": (field("reason", type="integer"), ("$.reason", "type")),
}

ACCEPTED: dict[str, tuple[type[Message], Change]] = {
    "an event gains an optional field": (
        Told,
        lambda schema: schema["properties"].update(new={"type": "string", "default": ""}),
    ),
    "an event gains an optional field deep inside": (Told, line("new", type="string", default="")),
    "an enum is listed in another order": (Told, field("state", enum=["shut", "open"])),
    "a description changes": (Told, field("size", description="How large", title="Size")),
    "an event's text may be longer": (Told, field("thing_id", maxLength=128)),
    "an event's bound is dropped": (Told, lambda schema: schema["properties"]["size"].pop("maximum")),
    "a command's text may be longer": (Asked, field("thing_id", maxLength=128)),
    "a command's least value falls": (Asked, line("count", minimum=-1)),
    "nothing changes": (Asked, lambda schema: None),
}


@pytest.mark.req("M1")
@pytest.mark.parametrize("name", REFUSED_IN_AN_EVENT)
def test_an_event_is_refused_when(name: str) -> None:
    change, expected = REFUSED_IN_AN_EVENT[name]
    assert expected in broken(Told, change)


@pytest.mark.req("M1")
@pytest.mark.parametrize("name", REFUSED_IN_A_COMMAND)
def test_a_command_is_refused_when(name: str) -> None:
    change, expected = REFUSED_IN_A_COMMAND[name]
    assert expected in broken(Asked, change)


@pytest.mark.req("M1")
@pytest.mark.parametrize("name", ACCEPTED)
def test_it_is_accepted_that(name: str) -> None:
    message, change = ACCEPTED[name]
    assert broken(message, change) == []


@pytest.mark.req("M1")
def test_a_break_is_told_with_message_path_and_rule() -> None:
    released = message_schema(Told)
    current = copy.deepcopy(released)
    current["properties"]["size"]["maximum"] = 9
    (found,) = breaks(Told.wire, released, current)
    assert str(found) == "thing.told.v1 at $.size: narrowed: maximum was 10 and is 9"


@pytest.mark.req("M1")
def test_a_definition_may_be_renamed_for_it_never_travels() -> None:
    released = message_schema(Asked)
    current = copy.deepcopy(released)
    current["$defs"]["Row"] = current["$defs"].pop("Line")
    current["$defs"]["Row"]["properties"]["inner"]["anyOf"][0]["$ref"] = "#/$defs/Row"
    current["properties"]["line"]["$ref"] = "#/$defs/Row"
    assert breaks(Asked.wire, released, current) == []


@pytest.mark.req("M1")
@pytest.mark.parametrize("name", sorted(all_schemas()))
def test_a_message_is_compatible_with_itself_and_losing_any_field_is_seen(name: str) -> None:
    released = all_schemas()[name]
    assert breaks(name, released, released) == []
    for lost in released["properties"]:
        current = copy.deepcopy(released)
        del current["properties"][lost]
        assert [found.path for found in breaks(name, released, current)] == [f"$.{lost}"]
