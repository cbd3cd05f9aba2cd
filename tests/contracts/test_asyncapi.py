"""The AsyncAPI document has the structure that the specification asks for, and every reference in it leads somewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from jsonschema import Draft202012Validator

from placet.contracts.catalogue import CATALOGUE

CONTRACTS = Path(__file__).parents[2] / "contracts"
DOCUMENT: dict[str, Any] = yaml.safe_load((CONTRACTS / "asyncapi.yaml").read_text())

REFERENCE = {"type": "object", "required": ["$ref"], "properties": {"$ref": {"type": "string"}}, "maxProperties": 1}
NAME = {"pattern": r"^[A-Za-z0-9._-]+$"}

# Read by hand from the AsyncAPI 3.0.0 specification and the AMQP bindings 0.3.0: as much as this document uses.
STRUCTURE: dict[str, Any] = {
    "type": "object",
    "required": ["asyncapi", "info", "channels", "operations", "components"],
    "additionalProperties": False,
    "properties": {
        "asyncapi": {"const": "3.0.0"},
        "info": {"type": "object", "required": ["title", "version"]},
        "defaultContentType": {"const": "application/cloudevents+json"},
        "servers": {"additionalProperties": {"type": "object", "required": ["host", "protocol"]}},
        "channels": {"propertyNames": NAME, "additionalProperties": {"$ref": "#/$defs/channel"}},
        "operations": {"propertyNames": NAME, "additionalProperties": {"$ref": "#/$defs/operation"}},
        "components": {
            "additionalProperties": False,
            "properties": {
                "messages": {"propertyNames": NAME, "additionalProperties": {"$ref": "#/$defs/message"}},
            },
        },
    },
    "$defs": {
        "channel": {
            "type": "object",
            "required": ["address", "messages", "bindings"],
            "additionalProperties": False,
            "properties": {
                "address": {"type": "string"},
                "title": {"type": "string"},
                "messages": {"minProperties": 1, "additionalProperties": REFERENCE},
                "parameters": {
                    "additionalProperties": {
                        "additionalProperties": False,
                        "properties": {
                            "enum": {"type": "array", "items": {"type": "string"}},
                            "description": {"type": "string"},
                        },
                    }
                },
                "bindings": {"required": ["amqp"], "properties": {"amqp": {"$ref": "#/$defs/channelBinding"}}},
            },
        },
        "channelBinding": {
            "required": ["is", "exchange", "bindingVersion"],
            "additionalProperties": False,
            "properties": {
                "is": {"const": "routingKey"},
                "exchange": {
                    "required": ["name", "type", "durable", "autoDelete"],
                    "properties": {"name": {"maxLength": 255}, "type": {"const": "topic"}},
                },
                "bindingVersion": {"const": "0.3.0"},
            },
        },
        "operation": {
            "type": "object",
            "required": ["action", "channel", "messages"],
            "additionalProperties": False,
            "patternProperties": {"^x-": {}},
            "properties": {
                "action": {"enum": ["send", "receive"]},
                "channel": REFERENCE,
                "summary": {"type": "string"},
                "messages": {"type": "array", "items": REFERENCE},
                "bindings": {"properties": {"amqp": {"$ref": "#/$defs/operationBinding"}}},
                "reply": {
                    "required": ["channel", "messages"],
                    "additionalProperties": False,
                    "patternProperties": {"^x-": {}},
                    "properties": {"channel": REFERENCE, "messages": {"type": "array", "items": REFERENCE}},
                },
            },
        },
        "operationBinding": {
            "required": ["bindingVersion"],
            "additionalProperties": False,
            "properties": {
                "userId": {"type": "string"},
                "deliveryMode": {"enum": [1, 2]},
                "mandatory": {"type": "boolean"},
                "ack": {"type": "boolean"},
                "bindingVersion": {"const": "0.3.0"},
            },
        },
        "message": {
            "type": "object",
            "required": ["name", "contentType", "payload"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string"},
                "title": {"type": "string"},
                "summary": {"type": "string"},
                "contentType": {"const": "application/cloudevents+json"},
                "correlationId": {"required": ["location"]},
                "payload": {"required": ["schemaFormat", "schema"], "additionalProperties": False, "properties": {
                    "schemaFormat": {"type": "string"}, "schema": {"type": "object"},
                }},
                "bindings": {"type": "object"},
            },
        },
    },
}  # fmt: skip


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if isinstance(fields.get("$ref"), str):
            yield fields["$ref"]
        for inner in fields.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from references(inner)


def resolve(reference: str) -> Any:
    found: Any = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


@pytest.mark.req("M1")
def test_the_document_has_the_structure_of_asyncapi_3() -> None:
    Draft202012Validator.check_schema(STRUCTURE)
    validator = cast("Any", Draft202012Validator(STRUCTURE))
    validator.validate(DOCUMENT)


@pytest.mark.req("M1")
def test_every_reference_leads_somewhere() -> None:
    for reference in references(DOCUMENT):
        if reference.startswith("#"):
            assert resolve(reference)
        else:
            assert (CONTRACTS / reference).is_file()


@pytest.mark.req("M1")
def test_an_operation_names_messages_of_its_own_channel_as_the_specification_asks() -> None:
    for operation in DOCUMENT["operations"].values():
        for side in (operation, operation.get("reply", operation)):
            channel = side["channel"]["$ref"]
            assert all(message["$ref"].startswith(f"{channel}/messages/") for message in side["messages"])


@pytest.mark.req("M1")
def test_who_says_and_who_hears_is_what_the_catalogue_says() -> None:
    expected: set[str] = set()
    for route in CATALOGUE:
        if route.kind != "reply":
            expected |= {f"{route.publisher}.send.{route.wire}"}
            expected |= {f"{consumer}.receive.{route.wire}" for consumer in route.consumers}
    assert DOCUMENT["operations"].keys() == expected


@pytest.mark.req("M1")
def test_a_question_names_its_answer_and_where_it_arrives() -> None:
    for route in CATALOGUE:
        if route.reply:
            reply = DOCUMENT["operations"][f"{route.publisher}.send.{route.wire}"]["reply"]
            channel = resolve(reply["channel"]["$ref"])
            assert channel["messages"].keys() == {route.reply.wire}
            assert channel["address"] == "reply.{asker}.{slot}"
            assert route.publisher in channel["parameters"]["asker"]["enum"]
