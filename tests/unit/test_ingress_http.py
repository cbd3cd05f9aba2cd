"""Ingress's door by itself: what HTTP asks of a server, whatever lies behind (U1)."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from placet.auth import KeySource, Principal, Verifier
from placet.ingress import handlers
from placet.ingress.domain import Accepted, Problem, TurnRequest
from placet.ingress.http import Api
from placet.local.issuer import APPROVER, ASKER, ISSUER, Issuer

MAX_BODY = 65536


class Entrance:
    """Accepts every turn."""

    async def accept(self, who: Principal, key: str, request: TurnRequest) -> Accepted:
        return Accepted("turn_1", request.conversation_id or "conv_1", replayed=False)


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
async def http(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of the API with nothing behind it but the entrance."""
    keys = KeySource(str(issuer.write_jwks(Path(tmp_path_factory.mktemp("keys")) / "jwks.json")))
    await keys.start()
    verifier = Verifier(keys, issuer=ISSUER, audience="placet")
    entrance: Any = Entrance()
    nothing: Any = None
    api = Api(nothing, nothing, verifier, entrance, nothing, answer_seconds=1, max_body=MAX_BODY)
    transport = httpx2.ASGITransport(app=api.app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://placet.example") as client:
        yield client


@pytest.fixture
def alice(issuer: Issuer) -> dict[str, str]:
    """What alice sends with a new turn."""
    return {"Authorization": f"Bearer {issuer.token('alice', 't1', ASKER)}", "Idempotency-Key": "k"}


@pytest.mark.req("U1")
@pytest.mark.parametrize("path", ["/healthz/", "/v1/turns/", "/v1/approvals/", "/openapi.json/"])
async def test_a_slash_at_the_end_names_nothing_and_leads_nowhere(http: httpx2.AsyncClient, path: str) -> None:
    response = await http.get(path, headers={"Host": "elsewhere.example"})
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert "location" not in response.headers


@pytest.mark.req("U1")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/turns", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("DELETE", "/v1/approvals/apr_1", "GET, HEAD"),
        ("HEAD", "/v1/conversations/conv_1/events", "GET"),
        ("POST", "/openapi.json", "GET, HEAD"),
    ],
)
async def test_a_method_that_a_path_does_not_have_is_told_those_that_it_has(
    http: httpx2.AsyncClient, method: str, path: str, allowed: str
) -> None:
    response = await http.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)


@pytest.mark.req("P6", "U1")
async def test_the_challenge_says_what_is_wrong_with_the_token(http: httpx2.AsyncClient, issuer: Issuer) -> None:
    told = [
        (await http.get("/v1/approvals", headers={"Authorization": authorization} if authorization else {})).headers
        for authorization in ("", "Basic YTpi", "Bearer not.a.token", f"Bearer {issuer.token('alice', 't1', ASKER)}")
    ]
    assert [headers["www-authenticate"] for headers in told] == [
        'Bearer realm="placet"',
        'Bearer realm="placet"',
        'Bearer realm="placet", error="invalid_token"',
        'Bearer realm="placet", error="insufficient_scope", scope="placet:approval.read"',
    ]


@pytest.mark.req("P6", "U1")
@pytest.mark.parametrize("path", ["/v1/turns", "/v1/conversations/conv_1/turns/turn_1/retry"])
async def test_who_may_not_ask_is_told_the_scope_before_anything_is_read(
    http: httpx2.AsyncClient, issuer: Issuer, path: str
) -> None:
    authorization = f"Bearer {issuer.token('ann', 't1', APPROVER)}"
    response = await http.post(path, content=b"{", headers={"Authorization": authorization})
    assert (response.status_code, response.json()["scope"]) == (403, "placet:turn.submit")
    assert response.headers["www-authenticate"].endswith('error="insufficient_scope", scope="placet:turn.submit"')


@pytest.mark.req("P6", "U2")
async def test_the_entrance_itself_wants_the_scope_by_whichever_door_somebody_comes() -> None:
    nothing: Any = None
    entrance = handlers.Entrance(nothing, b"key")
    powerless = Principal("t1", "ann", frozenset({"placet:approval.read"}))
    for asked in (entrance.accept(powerless, "k", TurnRequest(text="hello")), entrance.retry(powerless, "conv_1", "turn_1")):
        with pytest.raises(Problem, match="the token lacks the scope") as refused:
            await asked
        assert refused.value.body()["scope"] == "placet:turn.submit"


@pytest.mark.req("P6", "U1")
@pytest.mark.parametrize(
    ("name", "code"), [("Authorization", "authorization_repeated"), ("Idempotency-Key", "idempotency_key_invalid")]
)
async def test_a_header_that_says_who_or_which_is_sent_once(
    http: httpx2.AsyncClient, alice: dict[str, str], name: str, code: str
) -> None:
    headers = [*alice.items(), (name, "Bearer another")]
    response = await http.post("/v1/turns", json={"text": "hello"}, headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, code)
    assert (await http.post("/v1/turns", json={"text": "hello"}, headers=alice)).status_code == 202


@pytest.mark.req("U1", "A3")
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "the body is empty"),
        (b" \n", "the body is empty"),
        (b"{", "the body is not JSON"),
        (b"\xff", "the body is not UTF-8"),
        (b'{"text":"a","text":"b"}', "an object has the same name twice"),
        (b"[]", "the body should be a JSON object"),
        (b'{"text":" "}', "a text of blanks alone asks for nothing"),
    ],
)
async def test_who_sends_a_bad_body_is_told_what_is_wrong(
    http: httpx2.AsyncClient, alice: dict[str, str], body: bytes, detail: str
) -> None:
    response = await http.post("/v1/turns", content=body, headers=alice)
    assert (response.status_code, response.json()["detail"]) == (422, detail)


@pytest.mark.req("U1")
@pytest.mark.parametrize("path", ["/v1/turns", "/v1/approvals/apr_1/decision"])
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/", ""]
)
async def test_a_body_that_says_to_be_something_else_is_not_read_as_json(
    http: httpx2.AsyncClient, alice: dict[str, str], kind: str, path: str
) -> None:
    response = await http.post(path, content=b'{"text":"hello"}', headers=alice | {"Content-Type": kind})
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.req("U1")
@pytest.mark.parametrize(
    "kind", [None, "application/json", "Application/JSON ; charset=utf-8", "application/vnd.placet.turn+json"]
)
async def test_json_by_any_of_its_names_is_read(http: httpx2.AsyncClient, alice: dict[str, str], kind: str | None) -> None:
    headers = alice | ({"Content-Type": kind} if kind else {})
    assert (await http.post("/v1/turns", content=b'{"text":"hello"}', headers=headers)).status_code == 202
