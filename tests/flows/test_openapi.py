"""The OpenAPI document, held against what the API really takes and answers (U1)."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest
from fastapi.openapi.models import OpenAPI
from jsonschema import Draft202012Validator

from placet.local.issuer import APPROVER, ASKER
from world import Json, World, create, script

CONVERSATION, CARD = "/v1/conversations/{conversation_id}", "/v1/approvals/{interrupt_id}"
NAMES = {"conversation_id": "absent", "turn_id": "absent", "interrupt_id": "absent"}


@pytest.fixture
async def http(world: World) -> AsyncGenerator[httpx2.AsyncClient]:
    """Somebody who may do everything that a token can allow."""
    token = world.system.token("amy", world.tenant, *ASKER, *APPROVER)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=world.system.url, headers=headers, timeout=30) as client:
        yield client


@pytest.fixture
async def document(http: httpx2.AsyncClient) -> Json:
    return (await http.get("/openapi.json")).json()


def operations(document: Json) -> list[tuple[str, str, Json]]:
    return [(path, method, each) for path, found in document["paths"].items() for method, each in found.items()]


def form(schema: Json) -> Any:
    return Draft202012Validator(schema)


def check(document: Json, method: str, path: str, response: httpx2.Response) -> Any:
    """The body of an answer, which is one of those that the document names for this operation, and has its form."""
    responses = document["paths"][path][method]["responses"]
    kind = response.headers["content-type"].partition(";")[0]
    schema = responses[str(response.status_code)]["content"][kind]["schema"]
    form(schema | {"components": document["components"]}).validate(response.json())
    return response.json()


@pytest.mark.req("U1")
async def test_every_schema_is_one_and_every_reference_leads_somewhere(document: Json) -> None:
    OpenAPI.model_validate(document)
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    text = json.dumps(document)
    named = {piece.partition('"')[0] for piece in text.split("#/components/schemas/")[1:]}
    assert named == document["components"]["schemas"].keys()


@pytest.mark.req("U1")
async def test_each_operation_says_what_it_takes(document: Json) -> None:
    taken = {
        f"{method} {path}": [each["name"] for each in found.get("parameters", []) if each["in"] != "path"]
        for path, method, found in operations(document)
    }
    assert taken == {
        "get /healthz": [],
        "post /v1/turns": ["Idempotency-Key", "traceparent"],
        f"get {CONVERSATION}": [],
        f"get {CONVERSATION}/events": ["Last-Event-ID", "after"],
        f"post {CONVERSATION}/turns/{{turn_id}}/retry": ["traceparent"],
        "get /v1/approvals": ["limit", "cursor"],
        f"get {CARD}": [],
        f"post {CARD}/decision": ["traceparent"],
    }
    required = [
        each["name"] for *_, found in operations(document) for each in found.get("parameters", []) if each.get("required")
    ]
    assert set(required) == {"Idempotency-Key", *NAMES}
    events = document["paths"][f"{CONVERSATION}/events"]["get"]["responses"]["200"]
    assert [*events["content"]] == ["text/event-stream"]


@pytest.mark.req("U1", "P6")
async def test_each_operation_says_which_token_it_wants(world: World, document: Json) -> None:
    powerless = {"Authorization": f"Bearer {world.system.token('amy', world.tenant)}"}
    async with httpx2.AsyncClient(base_url=world.system.url, timeout=30) as http:
        for path, method, found in operations(document):
            bare = await http.request(method, path.format(**NAMES))
            assert (bare.status_code == 401) is ("security" in found)
            scopes: list[str] = found.get("security", [{"token": []}])[0]["token"]
            if scopes:
                refused = await http.request(method, path.format(**NAMES), headers=powerless)
                assert [check(document, method, path, refused)["scope"]] == scopes


@pytest.mark.req("U1")
@pytest.mark.parametrize(
    ("method", "path", "sent", "status"),
    [
        ("post", "/v1/turns", {"json": {"text": "hello"}}, 400),
        ("post", "/v1/turns", {"headers": {"Idempotency-Key": "k"}}, 422),
        ("post", "/v1/turns", {"headers": {"Idempotency-Key": "k", "Content-Type": "text/plain"}}, 415),
        ("get", CONVERSATION, {}, 404),
        ("get", f"{CONVERSATION}/events", {}, 404),
        ("post", f"{CONVERSATION}/turns/{{turn_id}}/retry", {}, 404),
        ("get", "/v1/approvals", {"params": {"limit": "0"}}, 400),
        ("get", "/v1/approvals", {"params": {"limit": "1000000"}}, 400),
        ("get", "/v1/approvals", {"params": {"cursor": "AAAA"}}, 400),
        ("get", CARD, {}, 404),
        ("post", f"{CARD}/decision", {}, 422),
        ("post", f"{CARD}/decision", {"json": {}}, 404),
        ("post", f"{CARD}/decision", {"content": b"{}", "headers": {"Content-Type": "text/plain"}}, 415),
    ],
)
async def test_a_refusal_is_a_problem_that_the_document_knows(
    http: httpx2.AsyncClient, document: Json, method: str, path: str, sent: Json, status: int
) -> None:
    response = await http.request(method, path.format(**NAMES), **sent)
    assert check(document, method, path, response)["status"] == response.status_code == status


@pytest.mark.req("U1")
async def test_what_is_answered_has_the_form_that_the_document_says(
    world: World, http: httpx2.AsyncClient, document: Json
) -> None:
    body = {"text": script([create("hello")], "done"), "conversation_id": "conv-of-amy"}
    wanted = document["paths"]["/v1/turns"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    form(wanted).validate(body)
    turn = check(document, "post", "/v1/turns", await http.post("/v1/turns", json=body, headers={"Idempotency-Key": "k"}))
    assert turn["conversation_id"] == "conv-of-amy"
    amy = await world.person("amy", *ASKER, *APPROVER)
    card = await world.card(turn, who=amy)
    named = {**turn, **card}
    for path in ("/v1/approvals", CARD, CONVERSATION):
        check(document, "get", path, await http.get(path.format(**named)))
    path = f"{CONVERSATION}/turns/{{turn_id}}/retry"
    assert check(document, "post", path, await http.post(path.format(**named)))["code"] == "not_stalled"
    path, answer = f"{CARD}/decision", {"decision": "approve", "digest": card["digest"]}
    assert check(document, "post", path, await http.post(path.format(**named), json=answer))["status"] == 403
    answer["decision"] = "deny"
    http.headers["Authorization"] = f"Bearer {world.system.token('ann', world.tenant, *APPROVER)}"
    assert check(document, "post", path, await http.post(path.format(**named), json=answer))["state"] == "denied"
    http.headers["Authorization"] = f"Bearer {world.system.token('amy', world.tenant, *ASKER)}"
    await world.state(turn, "completed", who=amy)
    check(document, "get", CONVERSATION, await http.get(CONVERSATION.format(**named)))
