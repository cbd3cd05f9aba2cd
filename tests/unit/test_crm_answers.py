"""What the CRM's connector makes of answers that no provider should give: bounded, and nothing in them is believed (E9)."""

import asyncio
import json
from contextlib import suppress
from typing import Any, cast

import pytest

from crm import GET, KEY, NOTE, answering, connected
from placet.contracts.commands import ResourceResolve
from placet.contracts.message import wrap
from placet.executor.connector import Ambiguous
from placet.executor.connectors.crm import MAX_ANSWER_BYTES, MAX_RECEIPT_CHARACTERS, MAX_SHOWN_CHARACTERS, Crm
from placet.executor.dispatch import dispatch
from placet.executor.handlers import Handlers
from placet.messaging import Cause, Publisher, Requester

CAUSE = Cause("executor", "msg_1", "t1", "c1", "")
ASKED = ResourceResolve(action="crm.note.create", resource="C-42")


@pytest.mark.req("E4", "E9")
async def test_of_a_long_receipt_the_beginning_is_kept() -> None:
    async with answering(json.dumps({"receipt": "r" * 300_000}).encode()) as crm:
        known = await dispatch(crm, NOTE, KEY, seconds=30, request_seconds=30)
    assert (known.outcome, known.receipt) == ("succeeded", "r" * MAX_RECEIPT_CHARACTERS)


@pytest.mark.req("E4", "E9")
@pytest.mark.parametrize("receipt", [None, 7, ["rcpt_1"]])
async def test_an_effect_with_an_odd_receipt_is_an_effect_without_one(receipt: Any) -> None:
    async with answering(json.dumps({"receipt": receipt}).encode()) as crm:
        assert (await crm.call(NOTE, KEY)).receipt is None


@pytest.mark.req("E4", "E9")
async def test_of_an_answer_that_is_too_large_the_rest_is_not_waited_for() -> None:
    async with answering(b"x" * (MAX_ANSWER_BYTES + 1), announced=100 * MAX_ANSWER_BYTES) as crm:
        with pytest.raises(Ambiguous, match="too_large"):
            await crm.call(GET, KEY)


@pytest.mark.req("E4")
async def test_a_connection_that_lay_idle_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placet.executor.connectors.crm.IDLE_SECONDS", 0.0)
    connections: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        async with connected(f"http://{host}:{port}") as crm:
            await crm.call(GET, KEY)
            await crm.call(GET, KEY)
    assert len(connections) == 2


async def resolved(crm: Crm) -> dict[str, Any]:
    """The message by which the executor answers for the connector, after it has been written as one."""
    handlers = Handlers(
        crm, cast("Requester", None), cast("Publisher", None), ask_seconds=1, dispatch_share=0.5, provider_seconds=30
    )
    answer = await handlers.on_resource_resolve(ASKED, CAUSE)
    body = wrap(answer, source="executor", tenant="t1", conversation="c1", cause="msg_1", traceparent="").encode()
    return json.loads(body)["data"]


ODD_CUSTOMERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"name": None, "status": None, "notes": None}, {}),
    ({"name": 7, "status": ["active"], "notes": "many"}, {}),
    ({"name": "Ada", "notes": {"n1": "x"}}, {"name": "Ada"}),
    ({"name": "a" * 300_000, "notes": [None, 1]}, {"name": "a" * MAX_SHOWN_CHARACTERS, "notes": 2}),
    ({"status": "\N{BELL}" * 70_000, "notes": []}, {"status": "\N{BELL}" * MAX_SHOWN_CHARACTERS, "notes": 0}),
]


@pytest.mark.req("A2", "E9")
@pytest.mark.parametrize(("customer", "shown"), ODD_CUSTOMERS)
async def test_a_card_shows_of_an_odd_customer_what_is_as_it_should_be(
    customer: dict[str, Any], shown: dict[str, Any]
) -> None:
    async with answering(json.dumps(customer).encode(), etag='"7"') as crm:
        answer = await resolved(crm)
    assert (answer["exists"], answer["revision"]) == (True, "7")
    assert answer["current"] == {"name": None, "status": None, "notes": None} | shown


@pytest.mark.req("E5", "E9")
@pytest.mark.parametrize(
    "etag", ['W/"7"', '"7 8"', '"\xe9"', '"' + "7" * 300 + '"'], ids=["weak", "blank", "accent", "long"]
)
async def test_a_revision_that_cannot_be_sent_back_as_a_condition_is_none_that_can_be_approved(etag: str) -> None:
    async with answering(b"{}", etag=etag) as crm:
        with pytest.raises(Ambiguous, match="revision"):
            await crm.resolve("t1", "crm.note.create", "C-42")


@pytest.mark.req("A2")
@pytest.mark.parametrize(("etag", "revision"), [("", None), ('""', None), ("7", "7"), ('"v:7/a"', "v:7/a")])
async def test_a_revision_is_taken_without_its_quotes(etag: str, revision: str | None) -> None:
    async with answering(b"{}", etag=etag) as crm:
        target = await crm.resolve("t1", "crm.note.create", "C-42")
    assert target is not None
    assert target.revision == revision
