"""The CRM: native idempotency keys, conditional writes by revision (If-Match)."""

import json
import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

import httpx2

from placet.canonical import CanonicalCommand, UnsafeJson, strict_loads
from placet.contracts.actions import ACTIONS
from placet.executor.connector import Ambiguous, Done, NotSent, Refused, Target
from placet.telemetry import call_span, current_traceparent

IDLE_SECONDS = 2.0
"""How long a connection may lie idle and be used again. Servers hang up after as little as 5 seconds, and a request that
meets it is lost with its answer: nobody knows whether it was heard (E4)."""

READS_REPLAY_SECONDS = 10 * 365 * 86400
"""A read may always be repeated."""

MAX_ANSWER_BYTES = 1024 * 1024
"""Of a larger answer not even the rest is read."""
MAX_RESULT_CHARACTERS = 16384
"""What the model is told of an answer at most; the effect counts all the same."""
MAX_RECEIPT_CHARACTERS = 1024
"""Of a longer receipt the beginning is kept."""
MAX_SHOWN_CHARACTERS = 1024
"""Of a longer name or status a card shows the beginning."""
_REVISION = re.compile(r"[!#-~]{0,256}")


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came back: the body only of a success, and of one that is too large only so much as to show it."""

    status: int
    etag: str
    body: bytes


class Crm:
    """The CRM's connector."""

    def __init__(self, url: str, token: str, *, replay_seconds: int, timeout: float) -> None:
        self._url, self._token = url, token
        self._replay_seconds, self._timeout = replay_seconds or None, timeout
        self._does: dict[str, Callable[[CanonicalCommand, str], httpx2.Request]] = {
            "crm.customer.get": self._get_customer,
            "crm.note.create": self._create_note,
            "crm.note.delete": self._delete_note,
            "crm.export": self._export,
        }

    async def start(self) -> None:
        """Open the client."""
        self._client = httpx2.AsyncClient(
            base_url=self._url,
            timeout=self._timeout,
            headers={"Authorization": f"Bearer {self._token}"},
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=IDLE_SECONDS),
        )

    async def stop(self) -> None:
        """Close the client."""
        await self._client.aclose()

    def replay_seconds(self, action: str) -> int | None:
        """Reads may always be repeated; effects while the CRM honours their key."""
        return READS_REPLAY_SECONDS if ACTIONS[action].effect == "read" else self._replay_seconds

    async def call(self, command: CanonicalCommand, key: str) -> Done:
        """Do what the command says. Raises NotSent, Refused or Ambiguous."""
        with call_span(f"dispatch {command.action}", placet__operation__id=key):
            answer = await self._sent(self._does[command.action](command, key))
        body = _judged(answer)
        return Done(_text(body.get("receipt"), MAX_RECEIPT_CHARACTERS), _bounded(body))

    async def resolve(self, tenant: str, action: str, resource: str) -> Target | None:
        """A customer of the tenant, as it is now. Raises NotSent, Refused or Ambiguous."""
        answer = await self._sent(self._client.build_request("GET", _customer(tenant, resource)))
        return None if answer.status == 404 else Target(_revision(answer), _shown(_judged(answer)))

    async def _sent(self, request: httpx2.Request) -> _Answer:
        """Send one request and read what comes back, as far as it may go (E9)."""
        try:
            async with aclosing(await self._client.send(request, stream=True)) as response:
                body = await _read(response) if response.is_success else b""
                return _Answer(response.status_code, response.headers.get("etag", ""), body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.LocalProtocolError) as error:
            raise NotSent(type(error).__name__) from error
        except httpx2.HTTPError as error:
            raise Ambiguous(f"{type(error).__name__}: the provider's answer was lost") from error

    def _get_customer(self, command: CanonicalCommand, key: str) -> httpx2.Request:
        path = _customer(command.tenant, command.resource)
        return self._client.build_request("GET", path, headers=_headers(command, key))

    def _create_note(self, command: CanonicalCommand, key: str) -> httpx2.Request:
        path, note = f"{_customer(command.tenant, command.resource)}/notes", {"body": command.arguments["body"]}
        return self._client.build_request("POST", path, json=note, headers=_headers(command, key))

    def _delete_note(self, command: CanonicalCommand, key: str) -> httpx2.Request:
        path = f"{_customer(command.tenant, command.resource)}/notes/{quote(command.arguments['note_id'], safe='')}"
        return self._client.build_request("DELETE", path, headers=_headers(command, key))

    def _export(self, command: CanonicalCommand, key: str) -> httpx2.Request:
        path = f"/tenants/{quote(command.tenant, safe='')}/export"
        return self._client.build_request("GET", path, headers=_headers(command, key))


def _customer(tenant: str, customer: str | None) -> str:
    return f"/tenants/{quote(tenant, safe='')}/customers/{quote(customer or '', safe='')}"


def _headers(command: CanonicalCommand, key: str) -> dict[str, str]:
    """The operation id is the key of every attempt (E2); the revision that was approved is a condition (E5)."""
    headers = {"Idempotency-Key": key, "traceparent": current_traceparent()}
    if command.expected_revision:
        headers["If-Match"] = f'"{command.expected_revision}"'
    return headers


async def _read(response: httpx2.Response) -> bytes:
    """The body, or so much of it as shows that it is too large."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            body += part
            if len(body) > MAX_ANSWER_BYTES:
                break
    return bytes(body)


def _judged(answer: _Answer) -> dict[str, Any]:
    if answer.status == 429:
        raise NotSent("the provider has too much to do and did nothing")
    if answer.status in (408, 409, 425):
        raise Ambiguous(f"the provider answered {answer.status}: another request with this key may be under way")
    if 400 <= answer.status < 500:
        raise Refused(_reason(answer.status))
    if not 200 <= answer.status < 300:
        raise Ambiguous(f"the provider answered {answer.status}")
    try:
        body = strict_loads(answer.body, max_bytes=MAX_ANSWER_BYTES)
    except UnsafeJson as error:
        raise Ambiguous(f"the provider's answer cannot be read: {error.code}") from error
    if not isinstance(body, dict):
        raise Ambiguous("the provider's answer is not an object")
    return cast("dict[str, Any]", body)


def _bounded(body: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(body, ensure_ascii=False)
    return body if len(text) <= MAX_RESULT_CHARACTERS else {"truncated": text[:MAX_RESULT_CHARACTERS]}


def _text(value: Any, most: int) -> str | None:
    return value[:most] if isinstance(value, str) else None


def _shown(customer: dict[str, Any]) -> dict[str, Any]:
    """A customer on a card: only what is as it should be, for another's answer may hold anything."""
    texts = {name: _text(customer.get(name), MAX_SHOWN_CHARACTERS) for name in ("name", "status")}
    notes = customer.get("notes")
    return texts | {"notes": len(cast("list[Any]", notes)) if isinstance(notes, list) else None}


def _revision(answer: _Answer) -> str | None:
    """What a later request can be made conditional on. A weak tag or an odd one cannot be sent back (RFC 9110, 13.1.1)."""
    tag = answer.etag.strip('"')
    if not _REVISION.fullmatch(tag):
        raise Ambiguous("the provider's revision cannot be a condition")
    return tag or None


def _reason(status: int) -> str:
    known = {404: "not_found", 412: "precondition_failed: the resource has changed since it was approved"}
    return known.get(status, f"the provider answered {status}")
