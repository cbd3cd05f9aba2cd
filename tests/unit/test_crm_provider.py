"""The demonstration provider keeps the promises on which the fault tests rest."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fakes.crm_provider.store import CrmStore, Operation

PROVIDER = Path(__file__).parents[1] / "fakes" / "crm_provider"
AUTHORIZED = {"Authorization": "Bearer secret"}
CUSTOMER = "/tenants/t1/customers/C-42"
NOTES = f"{CUSTOMER}/notes"


def start_provider() -> tuple[subprocess.Popen[str], str]:
    """The real process, and the address it says it listens on."""
    process = subprocess.Popen(
        [sys.executable, str(PROVIDER), "--port", "0", "--token", "secret"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    return process, json.loads(process.stdout.readline())["listening"]


def stop_provider(process: subprocess.Popen[str]) -> int:
    """Ask it to leave, and return its exit code."""
    with process:
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout=20)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    process, address = start_provider()
    yield address
    assert stop_provider(process) == 0


@pytest.fixture
async def crm(address: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=address, headers=AUTHORIZED, timeout=10) as client:
        assert (await client.post("/_control/reset")).status_code == 204
        yield client


async def add_note(crm: httpx2.AsyncClient, key: str = "op-1", body: str = "Hello", **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await crm.post(NOTES, json={"body": body}, headers={"Idempotency-Key": key, **named})


async def delete_note(crm: httpx2.AsyncClient, note_id: str, key: str, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await crm.delete(f"{NOTES}/{note_id}", headers={"Idempotency-Key": key, **named})


async def break_it(crm: httpx2.AsyncClient, **faults: Any) -> None:
    assert (await crm.put("/_control/faults", json=faults)).status_code == 200


async def effects(crm: httpx2.AsyncClient) -> list[dict[str, Any]]:
    return (await crm.get("/_control/effects")).json()


async def test_a_customer_is_read_with_its_revision_as_entity_tag(crm: httpx2.AsyncClient) -> None:
    response = await crm.get(CUSTOMER)

    assert response.status_code == 200
    assert response.headers["etag"] == '"1"'
    assert response.json() == {
        "id": "C-42",
        "name": "Ada Example GmbH",
        "email": "c-42@example.com",
        "status": "active",
        "revision": 1,
        "notes": [],
    }


@pytest.mark.parametrize(
    "path",
    [
        "/tenants/t1/customers/C-42",
        "/tenants/t1/customers/C-7",
        "/tenants/t1/customers/r-1",
        "/tenants/t1/customers/r-2",
        "/tenants/t2/customers/r-t2-1",
        "/tenants/acme/customers/C-42",
        "/tenants/acme/customers/C-7",
        "/tenants/bench-7/customers/anyone",
        "/tenants/mem/customers/anyone",
    ],
)
async def test_a_customer_exists(crm: httpx2.AsyncClient, path: str) -> None:
    assert (await crm.get(path)).status_code == 200


@pytest.mark.parametrize("path", ["/tenants/t1/customers/C-1", "/tenants/t2/customers/C-42"])
async def test_an_unknown_customer_or_one_of_another_tenant_is_not_found(crm: httpx2.AsyncClient, path: str) -> None:
    for response in (
        await crm.get(path),
        await crm.post(f"{path}/notes", json={"body": "x"}, headers={"Idempotency-Key": "k"}),
    ):
        assert (response.status_code, response.json()) == (404, {"error": "not_found"})
    assert await effects(crm) == []


async def test_the_business_api_asks_for_the_token(crm: httpx2.AsyncClient) -> None:
    for authorization in ("Bearer other", ""):
        response = await crm.get(CUSTOMER, headers={"Authorization": authorization})
        assert (response.status_code, response.json()) == (401, {"error": "unauthorized"})
        assert (await add_note(crm, Authorization=authorization)).status_code == 401
    assert await effects(crm) == []


async def test_the_control_api_asks_for_no_token(address: str) -> None:
    async with httpx2.AsyncClient(base_url=address) as stranger:
        assert (await stranger.get("/_control/effects")).status_code == 200


async def test_a_note_is_added_once_and_moves_the_revision(crm: httpx2.AsyncClient) -> None:
    response = await add_note(crm)
    answer = response.json()

    assert response.status_code == 201
    assert answer["receipt"].startswith("rcpt_")
    assert (answer["customer_id"], answer["revision"]) == ("C-42", 2)
    customer = await crm.get(CUSTOMER)
    assert customer.headers["etag"] == '"2"'
    assert customer.json()["notes"] == [{"id": answer["note_id"], "body": "Hello"}]
    assert await effects(crm) == [
        {
            "tenant": "t1",
            "operation_key": "op-1",
            "kind": "note.create",
            "customer_id": "C-42",
            "payload": {"body": "Hello"},
            "note_id": answer["note_id"],
        }
    ]


async def test_a_note_is_deleted(crm: httpx2.AsyncClient) -> None:
    note_id = (await add_note(crm)).json()["note_id"]

    stale = await delete_note(crm, note_id, "op-2", If_Match='"1"')
    deleted = await delete_note(crm, note_id, "op-2", If_Match='"2"')
    replayed = await delete_note(crm, note_id, "op-2")
    gone = await delete_note(crm, note_id, "op-3")

    assert [r.status_code for r in (stale, deleted, replayed, gone)] == [412, 200, 200, 404]
    assert deleted.json()["receipt"] == replayed.json()["receipt"]
    assert (await crm.get(CUSTOMER)).json()["notes"] == []
    assert [effect["kind"] for effect in await effects(crm)] == ["note.create", "note.delete"]


async def test_an_effect_needs_an_idempotency_key(crm: httpx2.AsyncClient) -> None:
    for response in (await crm.post(NOTES, json={"body": "x"}), await crm.delete(f"{NOTES}/n")):
        assert (response.status_code, response.json()) == (400, {"error": "idempotency_key_required"})


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"body": ""}', b'{"body": 1}', b'{"body": "x", "more": 1}'])
async def test_a_body_that_does_not_fit_is_refused(crm: httpx2.AsyncClient, body: bytes) -> None:
    response = await crm.post(NOTES, content=body, headers={"Idempotency-Key": "op-1"})
    assert (response.status_code, response.json()) == (422, {"error": "invalid_body"})
    assert await effects(crm) == []


async def test_the_same_request_again_gets_the_stored_answer(crm: httpx2.AsyncClient) -> None:
    first = await add_note(crm, If_Match='"1"')
    # The precondition no longer holds, but the operation is done: the key is looked at first.
    again = await add_note(crm, If_Match='"1"')

    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert len(await effects(crm)) == 1


async def test_a_key_cannot_be_used_for_another_request(crm: httpx2.AsyncClient) -> None:
    note_id = (await add_note(crm)).json()["note_id"]
    elsewhere = "/tenants/t1/customers/C-7/notes"

    for response in (
        await add_note(crm, body="Other"),
        await delete_note(crm, note_id, "op-1"),
        await crm.post(elsewhere, json={"body": "Hello"}, headers={"Idempotency-Key": "op-1"}),
    ):
        assert (response.status_code, response.json()) == (422, {"error": "idempotency_key_reused"})
    assert len(await effects(crm)) == 1


async def test_tenants_do_not_share_keys(crm: httpx2.AsyncClient) -> None:
    await add_note(crm)
    other = await crm.post("/tenants/acme/customers/C-42/notes", json={"body": "Hello"}, headers={"Idempotency-Key": "op-1"})
    assert other.status_code == 201
    assert "idempotent-replayed" not in other.headers
    assert (await crm.get("/tenants/t2/operations/op-1")).status_code == 404


async def test_a_moved_revision_is_refused_and_leaves_the_key_free(crm: httpx2.AsyncClient) -> None:
    changed = await crm.put("/_control/customers/t1/C-42", json={"status": "closed"})
    refused = await add_note(crm, If_Match='"1"')

    assert (changed.json()["status"], changed.json()["revision"]) == ("closed", 2)
    assert (refused.status_code, refused.json()) == (412, {"error": "precondition_failed"})
    assert (await crm.get("/tenants/t1/operations/op-1")).status_code == 404
    assert (await add_note(crm, If_Match='"2"')).status_code == 201


async def test_an_operation_is_queried_by_its_key(crm: httpx2.AsyncClient) -> None:
    assert (await crm.get("/tenants/t1/operations/t1/op")).status_code == 404
    done = await add_note(crm, key="t1/op")
    found = await crm.get("/tenants/t1/operations/t1/op")
    assert (found.status_code, found.json()) == (201, done.json())


async def test_the_export_holds_every_customer_of_the_tenant_only(crm: httpx2.AsyncClient) -> None:
    await add_note(crm)
    customers = (await crm.get("/tenants/t1/export")).json()["customers"]
    assert [customer["id"] for customer in customers] == ["C-42", "C-7", "r-1", "r-2"]
    assert customers[0]["notes"][0]["body"] == "Hello"


async def test_a_new_customer_can_be_brought_in(crm: httpx2.AsyncClient) -> None:
    await crm.put("/_control/customers/new/X-1", json={"name": "New"})
    customer = (await crm.get("/tenants/new/customers/X-1")).json()
    assert (customer["name"], customer["revision"]) == ("New", 1)
    assert (await crm.put("/_control/customers/new/X-1", json={"revision": 9})).status_code == 422


async def test_every_business_request_is_logged(crm: httpx2.AsyncClient) -> None:
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await crm.get(CUSTOMER)
    await add_note(crm, traceparent=traceparent, If_Match='"1"')
    read, added = (await crm.get("/_control/requests")).json()

    assert read["at"] <= added["at"]
    assert (read["method"], read["path"], read["operation_key"]) == ("GET", CUSTOMER, None)
    assert {name: value for name, value in added.items() if name != "at"} == {
        "method": "POST",
        "path": NOTES,
        "operation_key": "op-1",
        "traceparent": traceparent,
        "if_match": '"1"',
    }


async def test_a_reset_forgets_everything(crm: httpx2.AsyncClient) -> None:
    await add_note(crm)
    await break_it(crm, refuse_status=503)
    await crm.post("/_control/reset")

    assert await effects(crm) == []
    assert (await crm.get("/_control/requests")).json() == []
    assert (await crm.get("/_control/faults")).json()["refuse_status"] is None
    assert "idempotent-replayed" not in (await add_note(crm)).headers


async def test_a_dropped_response_is_a_broken_connection_after_the_effect(crm: httpx2.AsyncClient) -> None:
    await break_it(crm, drop_responses=1)
    with pytest.raises(httpx2.RemoteProtocolError):
        await add_note(crm)

    assert len(await effects(crm)) == 1
    assert (await crm.get("/tenants/t1/operations/op-1")).status_code == 201
    assert (await add_note(crm)).headers["idempotent-replayed"] == "true"
    assert len(await effects(crm)) == 1


async def test_a_refused_request_uses_up_no_fault(crm: httpx2.AsyncClient) -> None:
    await break_it(crm, drop_responses=2, garbage_responses=1)
    assert (await add_note(crm, If_Match='"7"')).status_code == 412
    assert (await crm.get(CUSTOMER)).status_code == 200
    faults = (await crm.get("/_control/faults")).json()
    assert (faults["drop_responses"], faults["garbage_responses"]) == (2, 1)


async def test_a_forgetful_provider_does_it_again(crm: httpx2.AsyncClient) -> None:
    await add_note(crm)
    await break_it(crm, forget_keys=True)
    again = await add_note(crm)
    queried = await crm.get("/tenants/t1/operations/op-1")

    assert (again.status_code, queried.status_code) == (201, 404)
    assert "idempotent-replayed" not in again.headers
    assert len(await effects(crm)) == 2

    await add_note(crm, key="unstored")
    await break_it(crm)
    assert (await crm.get("/tenants/t1/operations/unstored")).status_code == 404


async def test_a_refusal_has_no_effect(crm: httpx2.AsyncClient) -> None:
    await break_it(crm, refuse_status=503)
    for key in ("op-1", "op-2"):
        response = await add_note(crm, key=key)
        assert (response.status_code, response.json()) == (503, {"error": "refused"})
    assert await effects(crm) == []
    assert (await crm.get(CUSTOMER)).status_code == 200


async def test_garbage_comes_after_the_effect(crm: httpx2.AsyncClient) -> None:
    await break_it(crm, garbage_responses=1)
    response = await add_note(crm)

    assert response.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        response.json()
    assert len(await effects(crm)) == 1
    assert (await add_note(crm)).status_code == 201


async def test_an_error_comes_after_the_effect(crm: httpx2.AsyncClient) -> None:
    await break_it(crm, error_after_effect=1)
    assert (await add_note(crm)).status_code == 502
    assert len(await effects(crm)) == 1
    assert (await add_note(crm)).headers["idempotent-replayed"] == "true"


async def test_a_slow_provider_still_acts_after_its_caller_has_left(crm: httpx2.AsyncClient) -> None:
    await break_it(crm, slow_seconds=1)
    with pytest.raises(httpx2.ReadTimeout):
        await crm.post(NOTES, json={"body": "x"}, headers={"Idempotency-Key": "op-1"}, timeout=0.4)

    async with asyncio.timeout(10):
        while not await effects(crm):
            pass


@pytest.mark.parametrize(
    "faults", [{"explode": 1}, {"drop_responses": -1}, {"refuse_status": 200}, {"slow_seconds": "soon"}, []]
)
async def test_an_unknown_fault_is_refused(crm: httpx2.AsyncClient, faults: Any) -> None:
    assert (await crm.put("/_control/faults", json=faults)).status_code == 422


async def test_a_fault_that_is_not_named_is_off(crm: httpx2.AsyncClient) -> None:
    await break_it(crm, refuse_status=503, drop_responses=3)
    await break_it(crm, garbage_responses=1)
    assert (await crm.get("/_control/faults")).json() == {
        "slow_seconds": 0,
        "drop_responses": 0,
        "forget_keys": False,
        "refuse_status": None,
        "garbage_responses": 1,
        "error_after_effect": 0,
    }


async def test_simultaneous_requests_with_one_key_have_one_effect(crm: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(add_note(crm) for _ in range(20)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["receipt"] for answer in answers}) == 1
    assert len(await effects(crm)) == 1


async def test_it_leaves_with_exit_code_0_in_the_middle_of_a_request() -> None:
    process, address = start_provider()
    async with httpx2.AsyncClient(base_url=address, headers=AUTHORIZED, timeout=30) as client:
        await break_it(client, slow_seconds=60)
        waiting = asyncio.create_task(client.get(CUSTOMER))
        while not (await client.get("/_control/requests")).json():
            pass
        assert await asyncio.to_thread(stop_provider, process) == 0
        await asyncio.gather(waiting, return_exceptions=True)


def test_the_store_works_without_http() -> None:
    store = CrmStore()
    operation = Operation("t1", "op-1", "note.create", "C-42", payload={"body": "Hello"})
    first, again = store.execute(operation), store.execute(operation)
    assert (first.replayed, again.replayed, first.body == again.body) == (False, True, True)
    assert len(store.effects) == 1
