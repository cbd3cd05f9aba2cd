"""The JSON Schema (2020-12) of every message and of the envelope, made from the code."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from placet.contracts.catalogue import CATALOGUE
from placet.contracts.message import Message, schema_id

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ENVELOPE = "envelope"


class _Plain(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes from field names: they say nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def message_schema(message: type[Message], mode: JsonSchemaMode = "validation") -> dict[str, Any]:
    """What a reader accepts as the data of this message."""
    made = message.model_json_schema(mode=mode, schema_generator=_Plain)
    return {"$schema": DIALECT, "$id": schema_id(message.wire), **made}


def all_schemas() -> dict[str, dict[str, Any]]:
    """Every schema by its name: the wire names, and the envelope."""
    return {route.wire: message_schema(route.message) for route in CATALOGUE} | {ENVELOPE: envelope_schema()}


def envelope_schema() -> dict[str, Any]:
    """CloudEvents 1.0 in structured JSON, as Placet says it. Unknown extensions are allowed and ignored."""
    return {
        "$schema": DIALECT,
        "$id": schema_id(ENVELOPE),
        "title": "Envelope",
        "description": "A CloudEvents 1.0 event around one message. Publisher and exchange are checked beside it.",
        "type": "object",
        "required": ["specversion", "id", "source", "type", "time", "datacontenttype", "dataschema", "data"],
        "propertyNames": {"pattern": "^[a-z0-9]+$"},
        "properties": _ATTRIBUTES,
    }


_TEXT = {"type": "string", "minLength": 1}

_ATTRIBUTES: dict[str, Any] = {
    "specversion": {"const": "1.0"},
    "id": _TEXT | {"description": "Unique within the source; the same at every redelivery"},
    "source": {"type": "string", "pattern": "^/placet/[a-z]+$", "description": "Who says it"},
    "type": {
        "type": "string",
        "pattern": r"^[a-z]+(_[a-z]+)*(\.[a-z]+(_[a-z]+)*)+\.v[1-9][0-9]*$",
        "description": "What is said, with its version; also the routing key, except of replies",
    },
    "time": {
        "type": "string",
        "format": "date-time",
        # Most validators take a format as a remark only.
        "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
    },
    "datacontenttype": {"const": "application/json"},
    "dataschema": {"type": "string", "pattern": r"^urn:placet:schema:[a-z0-9_.]+$"},
    "tenantid": _TEXT | {"description": "The tenant, as the publisher verified it"},
    "conversationid": _TEXT,
    "causationid": _TEXT | {"description": "The id of the event that caused this one"},
    "traceparent": {
        "type": "string",
        "pattern": "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
        "description": "W3C trace context of the span that made the event",
    },
    "data": {"type": "object", "description": "The message; its schema is named by dataschema"},
}
