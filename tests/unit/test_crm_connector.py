"""The CRM's connector against the real demonstration provider: what is sent, and what each kind of answer is worth."""

import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from crm import EXPORT, GET, KEY, NOTE, TOKEN, connected
from placet.canonical import CanonicalCommand
from placet.executor.connector import Ambiguous, NotSent, Refused
from placet.executor.connectors.crm import (
    MAX_ANSWER_BYTES,
    MAX_RESULT_CHARACTERS,
    READS_REPLAY_SECONDS,
    Crm,
)
from placet.executor.dispatch import Known, Undecided, dispatch
from placet.local.processes import Process
from placet.testing import wait_until

PROVIDER = Path(__file__).parents[1] / "fakes" / "crm_provider"


@pytest.fixture(scope="module")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    log = tmp_path_factory.mktemp("crm") / "provider.log"
    process = Process("provider", [sys.executable, str(PROVIDER), "--port", "0", "--token", TOKEN], {}, log)
    yield (await process.said("listening"))["listening"]
    assert await process.terminate() == 0


@pytest.fixture
async def control(address: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=f"{address}/_control", timeout=10) as client:
        (await client.post("/reset")).raise_for_status()
        yield client


@pytest.fixture
async def crm(address: str, control: httpx2.AsyncClient) -> AsyncIterator[Crm]:
    async with connected(address) as connector:
        yield connector


async def requests(control: httpx2.AsyncClient) -> list[dict[str, Any]]:
    return (await control.get("/requests")).json()


async def effects(control: httpx2.AsyncClient) -> list[dict[str, Any]]:
    return (await control.get("/effects")).json()


async def fault(control: httpx2.AsyncClient, **faults: Any) -> None:
    (await control.put("/faults", json=faults)).raise_for_status()


@pytest.mark.req("E2", "E5")
async def test_a_note_is_created_under_the_operation_id_and_the_revision(crm: Crm, control: httpx2.AsyncClient) -> None:
    receipt = await crm.call(NOTE, KEY)
    (effect,) = await effects(control)
    (request,) = await requests(control)
    assert receipt.receipt == receipt.result["receipt"]
    assert (effect["operation_key"], effect["payload"], effect["customer_id"]) == (KEY, {"body": "hello"}, "C-42")
    assert (request["operation_key"], request["if_match"]) == (KEY, '"1"')


@pytest.mark.req("E2", "E5")
async def test_a_note_is_deleted_under_the_operation_id_and_the_revision(crm: Crm, control: httpx2.AsyncClient) -> None:
    note = (await crm.call(NOTE, KEY)).result["note_id"]
    arguments = {"customer_id": "C-42", "note_id": note}
    await crm.call(replace(NOTE, action="crm.note.delete", arguments=arguments, expected_revision="2"), "op_2")
    assert [(effect["kind"], effect["operation_key"]) for effect in await effects(control)] == [
        ("note.create", KEY),
        ("note.delete", "op_2"),
    ]
    assert (await requests(control))[-1]["if_match"] == '"2"'


async def test_reads_have_no_effect_and_no_condition(crm: Crm, control: httpx2.AsyncClient) -> None:
    customer = await crm.call(GET, KEY)
    export = await crm.call(EXPORT, "op_2")
    assert (customer.receipt, customer.result["name"]) == (None, "Ada Example GmbH")
    assert len(export.result["customers"]) == 4
    assert [request["if_match"] for request in await requests(control)] == [None, None]
    assert await effects(control) == []


@pytest.mark.req("A2")
async def test_a_target_is_found_inside_the_tenant_with_its_revision(crm: Crm) -> None:
    target = await crm.resolve("t1", "crm.note.create", "C-42")
    assert target is not None
    assert (target.revision, target.current) == ("1", {"name": "Ada Example GmbH", "status": "active", "notes": 0})


@pytest.mark.req("A2")
@pytest.mark.parametrize(("tenant", "resource"), [("t2", "C-42"), ("t1", "r-t2-1"), ("t1", "C-1")])
async def test_another_tenants_resource_does_not_exist(crm: Crm, tenant: str, resource: str) -> None:
    assert await crm.resolve(tenant, "crm.note.create", resource) is None


@pytest.mark.req("E5")
async def test_b32_a_revision_that_moved_is_refused_and_the_condition_stays(crm: Crm, control: httpx2.AsyncClient) -> None:
    (await control.put("/customers/t1/C-42", json={"status": "closed"})).raise_for_status()
    with pytest.raises(Refused, match="precondition_failed"):
        await crm.call(NOTE, KEY)
    assert await effects(control) == []


@pytest.mark.req("E3", "E4")
@pytest.mark.parametrize(("status", "kind"), [(408, Ambiguous), (409, Ambiguous), (425, Ambiguous), (429, NotSent)])
async def test_what_says_nothing_about_the_effect_is_no_refusal(
    crm: Crm, control: httpx2.AsyncClient, status: int, kind: type[Exception]
) -> None:
    await fault(control, refuse_status=status)
    with pytest.raises(kind):
        await crm.call(NOTE, KEY)


@pytest.mark.req("E4")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 412, 422])
async def test_b35_what_the_provider_refuses_is_refused(crm: Crm, control: httpx2.AsyncClient, status: int) -> None:
    await fault(control, refuse_status=status)
    with pytest.raises(Refused):
        await crm.call(NOTE, KEY)
    assert await effects(control) == []


@pytest.mark.req("E4")
async def test_a_wrong_credential_is_refused_and_the_reason_does_not_hold_it(
    address: str, control: httpx2.AsyncClient
) -> None:
    async with connected(address, token="CANARY") as crm:
        with pytest.raises(Refused) as caught:
            await crm.call(NOTE, KEY)
    assert "CANARY" not in str(caught.value)


@pytest.mark.req("E4")
@pytest.mark.parametrize("kind", ["drop_responses", "garbage_responses", "error_after_effect"])
async def test_b35_a_lost_or_spoilt_answer_is_ambiguous_and_the_effect_is_done(
    crm: Crm, control: httpx2.AsyncClient, kind: str
) -> None:
    await fault(control, **{kind: 1})
    with pytest.raises(Ambiguous):
        await crm.call(NOTE, KEY)
    assert len(await effects(control)) == 1


@pytest.mark.req("E4", "E9")
async def test_b35_an_answer_that_does_not_come_in_time_is_ambiguous(address: str, control: httpx2.AsyncClient) -> None:
    await fault(control, slow_seconds=0.5)
    async with connected(address, timeout=0.1, replay_seconds=0) as crm:
        known = await dispatch(crm, NOTE, KEY, seconds=30, request_seconds=30)  # a busy machine may connect late: not sent
    assert (known.outcome, "Timeout" in known.reason) == ("unknown", True)

    async def done() -> bool:
        return len(await effects(control)) == 1

    await wait_until(done, "the effect whose answer nobody waited for")


@pytest.mark.req("E4")
@pytest.mark.parametrize("status", [500, 502, 503])
async def test_b35_a_failing_provider_is_ambiguous(crm: Crm, control: httpx2.AsyncClient, status: int) -> None:
    await fault(control, refuse_status=status)
    with pytest.raises(Ambiguous, match=str(status)):
        await crm.call(NOTE, KEY)


@pytest.mark.req("E9")
async def test_of_a_long_result_the_model_is_told_the_beginning(crm: Crm) -> None:
    await crm.call(replace(NOTE, arguments={"customer_id": "C-42", "body": "x" * MAX_RESULT_CHARACTERS}), KEY)
    told = (await crm.call(GET, "op_2")).result
    assert list(told) == ["truncated"]
    assert len(told["truncated"]) == MAX_RESULT_CHARACTERS
    assert await crm.resolve("t1", "crm.note.create", "C-42") is not None


@pytest.mark.req("E9")
async def test_an_answer_beyond_any_bound_is_ambiguous(crm: Crm) -> None:
    await crm.call(replace(NOTE, arguments={"customer_id": "C-42", "body": "x" * MAX_ANSWER_BYTES}), KEY)
    with pytest.raises(Ambiguous, match="too_large"):
        await crm.call(GET, "op_2")


@pytest.fixture
def nobody() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.req("E4")
async def test_b35_a_connection_that_is_refused_means_that_nothing_was_sent(nobody: str) -> None:
    async with connected(nobody) as crm:
        with pytest.raises(NotSent):
            await crm.call(NOTE, KEY)
        with pytest.raises(NotSent):
            await crm.resolve("t1", "crm.note.create", "C-42")


@pytest.mark.req("E4")
async def test_b35_a_request_that_cannot_be_written_was_not_sent(address: str, control: httpx2.AsyncClient) -> None:
    async with connected(address, token=f"{TOKEN}\n") as crm:
        with pytest.raises(NotSent):
            await crm.call(NOTE, KEY)
    assert await requests(control) == []


@pytest.mark.req("E3")
def test_the_connector_states_its_contract() -> None:
    keyed = Crm("http://crm.invalid", TOKEN, replay_seconds=60, timeout=1)
    forgetful = Crm("http://crm.invalid", TOKEN, replay_seconds=0, timeout=1)
    assert (keyed.replay_seconds("crm.note.create"), forgetful.replay_seconds("crm.note.create")) == (60, None)
    assert {crm.replay_seconds("crm.export") for crm in (keyed, forgetful)} == {READS_REPLAY_SECONDS}


@pytest.mark.req("E2", "E4")
@pytest.mark.parametrize("kind", ["drop_responses", "garbage_responses", "error_after_effect"])
async def test_b36_every_attempt_carries_the_operation_id_and_the_effect_happens_once(
    crm: Crm, control: httpx2.AsyncClient, kind: str
) -> None:
    await fault(control, **{kind: 2})
    known = await dispatch(crm, NOTE, KEY, seconds=30, request_seconds=30)
    assert (known.outcome, known.attempts) == ("succeeded", 3)
    assert [request["operation_key"] for request in await requests(control)] == [KEY] * 3
    assert len(await effects(control)) == 1


@pytest.mark.req("E3", "E4")
async def test_b35_a_provider_that_forgets_keys_is_asked_once_and_the_outcome_is_unknown(
    address: str, control: httpx2.AsyncClient
) -> None:
    await fault(control, drop_responses=1, forget_keys=True)
    async with connected(address, replay_seconds=0) as crm:
        known = await dispatch(crm, NOTE, KEY, seconds=30, request_seconds=30)
    assert (known.outcome, known.attempts, len(await effects(control))) == ("unknown", 1, 1)


@pytest.mark.req("E4")
async def test_b35_an_effect_whose_answer_was_lost_is_not_denied_by_a_later_refusal(
    crm: Crm, control: httpx2.AsyncClient
) -> None:
    await fault(control, drop_responses=1)
    known = await refused_after_the_first(crm, control)
    assert len(await effects(control)) == 1
    assert known is None or known.outcome == "unknown"


async def refused_after_the_first(crm: Crm, control: httpx2.AsyncClient) -> Known | None:
    """What dispatch knows when the provider forgets its goodwill after the first request; None when it is undecided."""
    call = crm.call

    async def call_and_then_lose_the_right(command: CanonicalCommand, key: str) -> Any:
        try:
            return await call(command, key)
        finally:
            await fault(control, refuse_status=403)

    crm.call = call_and_then_lose_the_right
    try:
        return await dispatch(crm, NOTE, KEY, seconds=0.5, request_seconds=30)
    except Undecided:
        return None
