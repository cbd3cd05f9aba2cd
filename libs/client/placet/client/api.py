"""The HTTP API as Python calls. The same requests are safe to send again: turns by their key, decisions by nature."""

import json
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx2

ENDS = frozenset({"completed", "failed", "cancelled", "budget_exhausted"})
"""The states in which a turn has ended."""

_STREAM = httpx2.Timeout(30.0)
"""The server of a stream says every few seconds that it is still there: this much silence is a broken connection."""


class Refused(Exception):
    """The API refused a request; `problem` is its RFC 9457 document, `retry_after` how many seconds it wants to be left."""

    def __init__(self, status: int, problem: dict[str, Any], *, retry_after: float = 0) -> None:
        super().__init__(f"{status} {problem.get('code', '')}: {problem.get('detail', '')}")
        self.status, self.problem, self.retry_after = status, problem, retry_after

    @property
    def code(self) -> str:
        """The problem's code, for machines."""
        return str(self.problem.get("code", ""))


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a conversation. `id` is what a later request may go on after."""

    id: int
    type: str
    data: dict[str, Any]


class Client:
    """One person's view of one Placet: their address, their token. An async context manager."""

    def __init__(self, url: str, token: str, *, timeout: float = 30.0) -> None:
        # The certificates of the machine take longer to read than a local call takes: only for who needs them.
        encrypted = not url.startswith("http://")
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.AsyncClient(base_url=url, timeout=timeout, headers=headers, verify=encrypted)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def reach(self) -> None:
        """Ask whether Placet answers at this address; no token is needed. Raises Refused, or httpx2.HTTPError."""
        response = await self._http.get("/healthz")
        if not response.is_success:
            _read(response)

    async def submit(self, text: str, *, conversation_id: str | None = None, key: str | None = None) -> dict[str, Any]:
        """Ask for a turn; `turn_id` and `conversation_id`. Give a `key` of your own to be able to send it again.

        Raises Refused.
        """
        body = {"text": text} | ({"conversation_id": conversation_id} if conversation_id else {})
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        return _read(await self._http.post("/v1/turns", json=body, headers=headers))

    async def conversation(self, conversation_id: str) -> dict[str, Any]:
        """A conversation of one's own: state, turns, messages, cards. Raises Refused."""
        return _read(await self._http.get(f"/v1/conversations/{_segment(conversation_id)}"))

    async def retry(self, conversation_id: str, turn_id: str) -> dict[str, Any]:
        """Let a turn of one's own go on that stands still; its `stalled` says why. Raises Refused, for others too."""
        path = f"/v1/conversations/{_segment(conversation_id)}/turns/{_segment(turn_id)}/retry"
        return _read(await self._http.post(path))

    async def approvals(self) -> AsyncIterator[dict[str, Any]]:
        """The tenant's open cards, oldest first. Raises Refused."""
        cursor: str | None = None
        while True:
            page = _read(await self._http.get("/v1/approvals", params={"cursor": cursor} if cursor else {}))
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]
            if cursor is None:
                return

    async def approval(self, interrupt_id: str) -> dict[str, Any]:
        """One card of the tenant. Raises Refused."""
        return _read(await self._http.get(f"/v1/approvals/{_segment(interrupt_id)}"))

    async def decide(self, interrupt_id: str, decision: str, digest: str, *, comment: str = "") -> dict[str, Any]:
        """Answer a card: `approve` or `deny` what has this digest; the decision that stands. Raises Refused."""
        answer = {"decision": decision, "digest": digest} | ({"comment": comment} if comment else {})
        return await self.answer(interrupt_id, answer)

    async def answer(self, interrupt_id: str, answer: Any) -> dict[str, Any]:
        """Answer a card with any JSON; what does not fit its response schema is refused. Raises Refused."""
        return _read(await self._http.post(f"/v1/approvals/{_segment(interrupt_id)}/decision", json=answer))

    async def events(self, conversation_id: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """The events of a conversation from behind `after`, then live, for as long as the connection lasts.

        Raises Refused, or httpx2.TransportError when the connection breaks or is silent for 30 s. Go on after the last
        id then: nothing is missed and nothing comes twice.
        """
        headers = {"Last-Event-ID": str(after)}
        path = f"/v1/conversations/{_segment(conversation_id)}/events"
        async with self._http.stream("GET", path, headers=headers, timeout=_STREAM) as response:
            if not response.is_success:
                await response.aread()
                _read(response)
            async for event in _events(response):
                yield event


def _segment(name: str) -> str:
    """An id as one segment of a path. Raises Refused for what no quoting keeps there: servers read %2F as / before they
    choose a route, and may take dots out. The API has nothing of such a name."""
    if name in ("", ".", "..") or "/" in name:
        raise Refused(404, {"code": "not_found", "title": "not found", "detail": "there is no such thing"})
    return quote(name, safe="")


def _read(response: httpx2.Response) -> dict[str, Any]:
    try:
        body: Any = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        unreadable = {"code": "unreadable", "detail": f"this is not Placet: {response.text[:200]}"}
        raise Refused(response.status_code, unreadable, retry_after=_retry_after(response))
    if not response.is_success:
        raise Refused(response.status_code, cast("dict[str, Any]", body), retry_after=_retry_after(response))
    return cast("dict[str, Any]", body)


def _retry_after(response: httpx2.Response) -> float:
    """The seconds of Retry-After. A date is not looked at: Placet gives none."""
    text = response.headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0


async def _events(response: httpx2.Response) -> AsyncGenerator[Event]:
    fields: dict[str, str] = {}
    async for line in _lines(response):
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "data" in fields:
            yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}


async def _lines(response: httpx2.Response) -> AsyncGenerator[str]:
    """Lines that end with LF or CRLF. For `aiter_lines` U+2028 and others end a line too, and texts may hold them."""
    rest = b""
    async for piece in response.aiter_bytes():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode()
