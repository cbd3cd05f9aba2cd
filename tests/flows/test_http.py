"""The door: who may come in, with what, and what they are told when they may not."""

import json
from collections.abc import AsyncGenerator, Callable

import httpx2
import pytest

from placet.client import Event, Refused
from placet.local.issuer import APPROVER, ASKER, Issuer
from world import Json, World, create, read, results, script


def _http(world: World, token: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=world.system.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


def _alice(world: World) -> httpx2.AsyncClient:
    return _http(world, world.system.token("alice", world.tenant, *ASKER))


_BAD_TOKENS: dict[str, Callable[[Issuer, str], str]] = {
    "expired": lambda issuer, tenant: issuer.token("alice", tenant, ASKER, seconds=-3600),
    "other audience": lambda issuer, tenant: issuer.token("alice", tenant, ASKER, audience="somebody-else"),
    "other issuer": lambda issuer, tenant: issuer.token("alice", tenant, ASKER, issuer="https://elsewhere.example"),
    "other type": lambda issuer, tenant: issuer.token("alice", tenant, ASKER, kind="JWT"),
    "unknown key": lambda _, tenant: Issuer().token("alice", tenant, ASKER),
    "garbage": lambda _issuer, _tenant: "not.a.token",
}


@pytest.mark.req("P6", "U1")
@pytest.mark.parametrize("token", _BAD_TOKENS.values(), ids=_BAD_TOKENS.keys())
async def test_a_token_that_proves_nothing_is_401(world: World, token: Callable[[Issuer, str], str]) -> None:
    async with _http(world, token(world.system.issuer, world.tenant)) as http:
        response = await http.post("/v1/turns", json={"text": "hello"}, headers={"Idempotency-Key": "k"})
    assert response.status_code == 401
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.json()["code"] == "invalid_token"


@pytest.mark.req("U1")
async def test_no_token_is_401_and_the_wrong_scope_403(world: World) -> None:
    async with httpx2.AsyncClient(base_url=world.system.url) as http:
        assert (await http.get("/v1/approvals")).json()["code"] == "token_required"
    with pytest.raises(Refused) as refused:
        await world.ann.submit("hello")
    assert (refused.value.status, refused.value.code) == (403, "scope_missing")
    with pytest.raises(Refused) as refused:
        [card async for card in world.alice.approvals()]
    assert (refused.value.status, refused.value.code) == (403, "scope_missing")


@pytest.mark.req("T13", "A13")
async def test_another_tenant_looks_exactly_like_nothing(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    for attempt, absent in (
        (world.bob.conversation(turn["conversation_id"]), world.bob.conversation("conv_absent")),
        (world.ben.approval(card["interrupt_id"]), world.ben.approval("apr_absent")),
        (world.approve(card, world.ben), world.ben.decide("apr_absent", "approve", card["digest"])),
    ):
        problems: list[Json] = []
        for each in (attempt, absent):
            with pytest.raises(Refused) as refused:
                await each
            problems.append(refused.value.problem)
        assert problems[0] | {"interrupt_id": ""} == problems[1] | {"interrupt_id": ""}
        assert problems[0]["status"] == 404
    assert (await world.ann.approval(card["interrupt_id"]))["state"] == "pending"


@pytest.mark.req("U1", "A3")
@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        (b'{"text":"a","text":"b"}', "duplicate_key", "$.text"),
        (b'{"text":"a","te\\u0078t":"b"}', "duplicate_key", "$.text"),
        (b'{"text":{"a":{"b":1,"b":2}}}', "duplicate_key", "$.text.a.b"),
        (b'{"text":[{"b":1},{"b":1,"b":2}]}', "duplicate_key", "$.text[1].b"),
        (b'{"text":NaN}', "not_a_number", "$.text"),
        (b'{"text":[9007199254740992]}', "number_out_of_range", "$.text[0]"),
        (b'{"text":"a\\u0000b"}', "nul_character", "$.text"),
        (b'{"text":"\\ud800"}', "lone_surrogate", "$.text"),
        (b'{"text":' + b"[" * 40 + b"]" * 40 + b"}", "too_deep", "$.text" + "[0]" * 31),
        (b'{"text":"' + b"a" * 70000 + b'"}', "too_large", "$"),
        (b'{"text":"hello","more":1}', "invalid_body", "$.more"),
        (b'{"text":""}', "invalid_body", "$.text"),
        (b'{"text":" \\n"}', "invalid_body", "$.text"),
        (b'{"text":7}', "invalid_body", "$.text"),
        (b"{", "not_json", "offset 1"),
        (b"\xff", "not_utf8", "$"),
    ],
)
async def test_b29_a_body_that_is_not_safe_is_422_with_its_path(world: World, body: bytes, code: str, path: str) -> None:
    async with _alice(world) as http:
        response = await http.post("/v1/turns", content=body, headers={"Idempotency-Key": "k"})
    assert response.status_code == 422
    assert (response.json()["code"], response.json()["path"]) == (code, path)


@pytest.mark.req("U1", "A3")
@pytest.mark.parametrize(("more", "status", "code"), [(0, 404, "not_found"), (11_000, 422, "too_large")])
async def test_an_answer_that_outgrows_its_message_is_422(world: World, more: int, status: int, code: str) -> None:
    """A number of few bytes is written out on the way, and the token travels with the answer."""
    answer = b"[" + b",".join([b"9e15"] * 13_000) + b"]"
    async with _http(world, world.system.token("ann", world.tenant, *APPROVER, "x" * more)) as http:
        response = await http.post("/v1/approvals/apr_absent/decision", content=answer)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.json().get("path") == ("$" if code == "too_large" else None)


@pytest.mark.req("U1", "T13")
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/conversations/%00", 404, "not_found"),
        ("GET", "/v1/conversations/%ED%A0%80/events", 404, "not_found"),
        ("GET", "/v1/approvals/%00", 404, "not_found"),
        ("POST", "/v1/approvals/_abc/decision", 404, "not_found"),
        ("GET", "/v1/approvals?limit=0", 400, "invalid_limit"),
        ("GET", "/v1/approvals?cursor=AAAA", 400, "invalid_cursor"),
        ("GET", "/v1/approvals?cursor=MDAwMS0wMS0wMVQwMDowMDowMCsxNDowMHxhcHI=", 400, "invalid_cursor"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("PUT", "/v1/turns", 405, "method_not_allowed"),
    ],
)
async def test_a_path_that_names_nothing_is_a_problem_and_never_a_fault(
    world: World, method: str, path: str, status: int, code: str
) -> None:
    token = world.system.token("ann", world.tenant, *ASKER, *APPROVER)
    async with _http(world, token) as http:
        response = await http.request(method, path, content=b"{}")
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.req("U1")
async def test_head_says_what_get_would_say_of_itself(world: World) -> None:
    turn = await world.alice.submit(script("hello"))
    await world.state(turn, "completed")
    async with _http(world, world.system.token("alice", world.tenant, *ASKER, *APPROVER)) as http:
        for path in (
            "/healthz",
            f"/v1/conversations/{turn['conversation_id']}",
            "/v1/approvals",
            "/v1/approvals/apr_absent",
        ):
            whole, head = await http.get(path), await http.head(path)
            kept = [(each.status_code, each.headers.get("content-length")) for each in (whole, head)]
            assert kept[0] == kept[1]
            assert head.content == b""


@pytest.mark.req("U1")
async def test_a_stream_ends_with_the_token_that_opened_it(world: World) -> None:
    turn = await world.alice.submit(script("hello"))
    await world.state(turn, "completed")
    token = world.system.issuer.token("alice", world.tenant, ASKER, seconds=2)
    async with (
        _http(world, token) as http,
        http.stream("GET", f"/v1/conversations/{turn['conversation_id']}/events") as lines,
    ):
        seen = [line async for line in lines.aiter_lines()]
    assert "event: turn.changed.v1" in seen


@pytest.mark.req("U1")
async def test_the_same_key_is_the_same_turn_and_never_another_one(world: World) -> None:
    async with _alice(world) as http:
        missing = await http.post("/v1/turns", json={"text": "hello"})
        first, again = [
            await http.post("/v1/turns", json={"text": "hello"}, headers={"Idempotency-Key": '"key-1"'}) for _ in range(2)
        ]
        other = await http.post("/v1/turns", json={"text": "other"}, headers={"Idempotency-Key": "key-1"})
    assert (missing.status_code, missing.json()["code"]) == (400, "idempotency_key_required")
    assert (first.status_code, again.status_code, first.json()) == (202, 202, again.json())
    assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    foreign = await world.bob.submit("hello", key="key-1")
    assert foreign["turn_id"] != first.json()["turn_id"]


@pytest.mark.req("T8")
async def test_a_conversation_has_one_turn_at_a_time(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    with pytest.raises(Refused) as refused:
        await world.alice.submit("and then", conversation_id=turn["conversation_id"])
    assert (refused.value.status, refused.value.code) == (409, "turn_in_progress")
    await world.deny(card)
    await world.state(turn, "completed")
    later = await world.alice.submit(script("hello again"), conversation_id=turn["conversation_id"])
    view = await world.state(later, "completed")
    assert [message["position"] for message in view["messages"]] == list(range(6))


@pytest.mark.req("P6")
async def test_who_asked_cannot_approve_and_who_may_not_decide_cannot_either(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    with pytest.raises(Refused) as refused:
        await world.approve(card, await world.person("alice", *ASKER, *APPROVER))
    assert (refused.value.status, refused.value.code) == (403, "second_person_required")
    with pytest.raises(Refused) as refused:
        await world.approve(card, await world.person("carol", "placet:approval.read"))
    assert (refused.value.status, refused.value.code) == (403, "not_an_approver")
    narrow = world.system.issuer.token("ann", world.tenant, APPROVER, audience="placet")
    async with _http(world, narrow) as http:
        answer = {"decision": "approve", "digest": card["digest"]}
        response = await http.post(f"/v1/approvals/{card['interrupt_id']}/decision", json=answer)
    assert (response.status_code, response.json()["code"]) == (401, "invalid_token")
    assert await world.effects() == []


@pytest.mark.req("P1", "A1", "A2")
async def test_what_the_model_may_not_do_it_is_told_in_words_to_act_on(world: World) -> None:
    calls = [
        {"tool": "crm_export", "arguments": {"format": "csv"}},
        {"tool": "crm_everything_drop"},
        {"tool": "crm_customer_get", "arguments": {"customer_id": "C-42", "tenant": "t2"}},
        create("x", "nowhere"),
        create("x", "r-t2-1"),
    ]
    alice = await world.person("alice", *ASKER, tenant="t1")
    told: list[str] = []
    for call in calls:
        turn = await alice.submit(script([call], "done"))
        view = await world.state(turn, "completed", who=alice)
        told += [f"{message['outcome']} {json.loads(message['text'])['reason']}" for message in results(view)]
    assert told[0].startswith("denied Bulk export")
    assert told[1].startswith("rejected unknown_action: there is no action 'crm_everything_drop'; there are crm.")
    assert told[2] == "rejected invalid_arguments: tenant: Extra inputs are not permitted"
    assert told[3:] == [f"rejected not_found: there is no customer_id {name!r}" for name in ("nowhere", "r-t2-1")]
    assert await world.effects("t1") == []


@pytest.mark.req("U1", "O1")
async def test_b01_two_viewers_see_every_event_once_and_in_order(world: World) -> None:
    turn = await world.alice.submit(script([read(), create("hello")], "done"))
    card = await world.card(turn)
    early = [event async for event in _until(world, turn, "permission.requested.v1", 0)]
    assert [event.id for event in early] == list(range(1, len(early) + 1))
    viewers = [_until(world, turn, "completed", after) for after in (0, early[0].id)]
    await world.approve(card)
    whole, rest = [[event async for event in viewer] for viewer in viewers]
    assert [event.id for event in whole] == list(range(1, len(whole) + 1))
    assert whole[: len(early)] == early
    assert rest == whole[1:]
    again = [event async for event in _until(world, turn, "completed", whole[-2].id)]
    assert again == whole[-1:]


async def _until(world: World, turn: Json, what: str, after: int) -> AsyncGenerator[Event]:
    async for event in world.alice.events(turn["conversation_id"], after=after):
        yield event
        if what in (event.type, event.data.get("state")):
            return
