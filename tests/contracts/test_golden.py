"""The committed examples, and those of every release, are still read by the code of today."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from placet.contracts.catalogue import ROUTES
from placet.contracts.ids import new_secret_id
from placet.contracts.message import MAX_BYTES, Envelope, Unreadable, decode

CONTRACTS = Path(__file__).parents[2] / "contracts"
EXAMPLES = sorted((CONTRACTS / "examples").glob("*.json"))
RELEASED = sorted((CONTRACTS / "released").glob("*/examples/*.json"))
KNOWN = {wire: route.message for wire, route in ROUTES.items()}


def schema(name: str) -> Any:
    """The validator of a committed schema; its own stubs leave the types open."""
    document = json.loads((CONTRACTS / "schemas" / f"{name}.json").read_text())
    return Draft202012Validator(document, format_checker=FormatChecker())


def fields_of(event: dict[str, Any], field: str, value: object) -> bytes:
    return json.dumps(event | {field: value}).encode()


@pytest.mark.req("M1")
def test_every_message_has_a_committed_example() -> None:
    assert {path.stem for path in EXAMPLES} == ROUTES.keys()


@pytest.mark.req("M1")
@pytest.mark.parametrize("path", [*EXAMPLES, *RELEASED], ids=lambda path: str(path.relative_to(CONTRACTS)))
def test_an_example_is_read_as_the_message_that_its_publisher_may_say(path: Path) -> None:
    envelope = decode(path.read_bytes(), KNOWN)
    assert envelope.message.wire == path.stem
    assert envelope.source == ROUTES[path.stem].publisher


@pytest.mark.req("M1")
def test_examples_name_an_interrupt_as_the_system_does() -> None:
    bodies = [json.loads(path.read_bytes())["data"] for path in EXAMPLES]
    named = {body["interrupt_id"] for body in bodies if "interrupt_id" in body}
    assert {re.sub("[0-9a-f]", "0", each) for each in named} == {re.sub("[0-9a-f]", "0", new_secret_id("apr"))}


@pytest.mark.req("M1")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_keeps_every_field_when_it_is_written_again(path: Path) -> None:
    envelope: Envelope[Any] = decode(path.read_bytes(), KNOWN)
    assert json.loads(envelope.encode()) == json.loads(path.read_bytes())


@pytest.mark.req("M1")
@pytest.mark.parametrize("path", [*EXAMPLES, *RELEASED], ids=lambda path: str(path.relative_to(CONTRACTS)))
def test_an_example_fits_its_schema_and_the_envelope(path: Path) -> None:
    event = json.loads(path.read_bytes())
    schema("envelope").validate(event)
    schema(path.stem).validate(event["data"])
    assert len(path.read_bytes()) < MAX_BYTES


@pytest.mark.req("M1")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_schema_and_code_agree_on_an_unknown_field(path: Path) -> None:
    event = json.loads(path.read_bytes())
    data = event["data"] | {"not_in_the_contract": True}
    body = fields_of(event, "data", data)
    if schema(path.stem).is_valid(data):
        assert decode(body, KNOWN).message.wire == path.stem
    else:
        with pytest.raises(Unreadable, match="not_in_the_contract"):
            decode(body, KNOWN)


@pytest.mark.req("M1")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_schema_and_code_agree_on_a_missing_field(path: Path) -> None:
    event = json.loads(path.read_bytes())
    for name in event["data"]:
        data = {key: value for key, value in event["data"].items() if key != name}
        if not data or schema(path.stem).is_valid(data):
            continue
        with pytest.raises(Unreadable, match=name):
            decode(fields_of(event, "data", data), KNOWN)


@pytest.mark.req("M1")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("specversion", "0.3"),
        ("id", ""),
        ("source", "somewhere"),
        ("type", "permission.decided"),
        ("time", "yesterday"),
        ("traceparent", "00-xyz"),
        ("tenantId", "acme"),
    ],
)
def test_the_envelope_schema_refuses_what_cloudevents_or_placet_does_not_allow(name: str, value: str) -> None:
    event = json.loads(EXAMPLES[0].read_bytes())
    assert not schema("envelope").is_valid(event | {name: value})


@pytest.mark.req("M1")
def test_an_unknown_major_version_is_unreadable_and_never_empty() -> None:
    event = json.loads((CONTRACTS / "examples" / "command.ready.v1.json").read_bytes())
    with pytest.raises(Unreadable, match=r"command\.ready\.v2"):
        decode(fields_of(event, "type", "command.ready.v2"), KNOWN)
