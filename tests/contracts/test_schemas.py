"""The schemas are sound, closed where a wish is made, and named as the envelopes name them."""

import re

import pytest
from jsonschema import Draft202012Validator

from placet.contracts.catalogue import CATALOGUE, Route
from placet.contracts.message import Command
from placet.contracts.schemas import all_schemas, message_schema

every_route = pytest.mark.parametrize("route", CATALOGUE, ids=lambda route: route.wire)


@pytest.mark.req("M1")
@pytest.mark.parametrize("name", sorted(all_schemas()))
def test_a_schema_is_valid_and_bears_its_name(name: str) -> None:
    made = all_schemas()[name]
    Draft202012Validator.check_schema(made)
    assert made["$id"] == f"urn:placet:schema:{name}"
    assert made["description"]


@pytest.mark.req("M1")
@every_route
def test_commands_are_closed_and_events_are_open(route: Route) -> None:
    closed = message_schema(route.message).get("additionalProperties") is False
    assert closed == issubclass(route.message, Command)


@pytest.mark.req("M1")
@every_route
def test_a_message_is_named_with_its_version(route: Route) -> None:
    assert re.fullmatch(r"[a-z_]+\.[a-z]+\.v[1-9]\d*", route.wire)


@pytest.mark.req("M1")
@every_route
def test_what_is_written_satisfies_what_is_read(route: Route) -> None:
    reads = message_schema(route.message)
    writes = message_schema(route.message, "serialization")
    assert writes["properties"].keys() == reads["properties"].keys()
    assert set(reads.get("required", [])) <= set(writes["required"])
