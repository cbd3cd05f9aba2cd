"""The CRM: native idempotency keys, conditional writes by revision (If-Match)."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import quote

import httpx2

from placet.canonical import CanonicalCommand, strict_loads
from placet.canonical import Refused as NotJson
from placet.contracts.actions import ACTIONS
from placet.executor.connector import Ambiguous, NotSent, Receipt, Refused, Target
from placet.telemetry import call_span, current_traceparent

READS_REPLAY_SECONDS = 10 * 365 * 86400
"""A read may always be repeated."""

MAX_ANSWER_BYTES = 1024 * 1024
MAX_RESULT_CHARACTERS = 16384
"""What the model is told of an answer at most; the effect counts all the same."""
MAX_RECEIPT_CHARACTERS = 1024
"""Of a longer receipt the beginning is kept."""


class Crm:
    """The CRM's connector."""

    def __init__(self, url: str, token: str, *, replay_seconds: int, timeout: float) -> None:
        self._url, self._token = url, token
        self._replay_seconds, self._timeout = replay_seconds or None, timeout
        self._does: dict[str, Callable[[CanonicalCommand, str], Awaitable[httpx2.Response]]] = {
            "crm.customer.get": self._get_customer,
            "crm.note.create": self._create_note,
            "crm.note.delete": self._delete_note,
            "crm.export": self._export,
        }

    async def start(self) -> None:
        """Open the client."""
        self._client = httpx2.AsyncClient(
            base_url=self._url, timeout=self._timeout, headers={"Authorization": f"Bearer {self._token}"}
        )

    async def stop(self) -> None:
        """Close the client."""
        await self._client.aclose()

    def replay_seconds(self, action: str) -> int | None:
        """Reads may always be repeated; effects while the CRM honours their key."""
        return READS_REPLAY_SECONDS if ACTIONS[action].effect == "read" else self._replay_seconds

    async def call(self, command: CanonicalCommand, key: str) -> Receipt:
        """Do what the command says. Raises NotSent, Refused or Ambiguous."""
        with call_span(f"dispatch {command.action}", placet__operation__id=key):
            response = await _sent(self._does[command.action](command, key))
        body = _judged(response)
        receipt = body.get("receipt")
        return Receipt(receipt[:MAX_RECEIPT_CHARACTERS] if isinstance(receipt, str) else None, _bounded(body))

    async def resolve(self, tenant: str, action: str, resource: str) -> Target | None:
        """A customer of the tenant, as it is now. Raises NotSent, Refused or Ambiguous."""
        response = await _sent(self._client.get(_customer(tenant, resource)))
        if response.status_code == 404:
            return None
        body = _judged(response)
        shown = {name: body.get(name) for name in ("name", "status")} | {"notes": len(body.get("notes", []))}
        return Target(response.headers.get("etag", "").strip('"') or None, shown)

    async def _get_customer(self, command: CanonicalCommand, key: str) -> httpx2.Response:
        return await self._client.get(_customer(command.tenant, command.resource), headers=_headers(command, key))

    async def _create_note(self, command: CanonicalCommand, key: str) -> httpx2.Response:
        return await self._client.post(
            f"{_customer(command.tenant, command.resource)}/notes",
            json={"body": command.arguments["body"]},
            headers=_headers(command, key),
        )

    async def _delete_note(self, command: CanonicalCommand, key: str) -> httpx2.Response:
        note = command.arguments["note_id"]
        return await self._client.delete(
            f"{_customer(command.tenant, command.resource)}/notes/{quote(note, safe='')}", headers=_headers(command, key)
        )

    async def _export(self, command: CanonicalCommand, key: str) -> httpx2.Response:
        return await self._client.get(f"/tenants/{quote(command.tenant, safe='')}/export", headers=_headers(command, key))


def _customer(tenant: str, customer: str | None) -> str:
    return f"/tenants/{quote(tenant, safe='')}/customers/{quote(customer or '', safe='')}"


def _headers(command: CanonicalCommand, key: str) -> dict[str, str]:
    """The operation id is the key of every attempt (E2); the revision that was approved is a condition (E5)."""
    headers = {"Idempotency-Key": key, "traceparent": current_traceparent()}
    if command.expected_revision:
        headers["If-Match"] = f'"{command.expected_revision}"'
    return headers


async def _sent(request: Awaitable[httpx2.Response]) -> httpx2.Response:
    try:
        return await request
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.LocalProtocolError) as error:
        raise NotSent(type(error).__name__) from error
    except httpx2.HTTPError as error:
        raise Ambiguous(f"{type(error).__name__}: the provider's answer was lost") from error


def _judged(response: httpx2.Response) -> dict[str, Any]:
    if response.status_code == 429:
        raise NotSent("the provider has too much to do and did nothing")
    if response.status_code in (408, 409, 425):
        raise Ambiguous(f"the provider answered {response.status_code}: another request with this key may be under way")
    if 400 <= response.status_code < 500:
        raise Refused(_reason(response))
    if not response.is_success:
        raise Ambiguous(f"the provider answered {response.status_code}")
    try:
        body = strict_loads(response.content, max_bytes=MAX_ANSWER_BYTES)
    except NotJson as error:
        raise Ambiguous(f"the provider's answer cannot be read: {error.code}") from error
    if not isinstance(body, dict):
        raise Ambiguous("the provider's answer is not an object")
    return cast("dict[str, Any]", body)


def _bounded(body: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(body, ensure_ascii=False)
    return body if len(text) <= MAX_RESULT_CHARACTERS else {"truncated": text[:MAX_RESULT_CHARACTERS]}


def _reason(response: httpx2.Response) -> str:
    known = {404: "not_found", 412: "precondition_failed: the resource has changed since it was approved"}
    return known.get(response.status_code, f"the provider answered {response.status_code}")
