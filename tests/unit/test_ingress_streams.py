"""Streams of events by themselves: how one ends, and that it leaves nothing behind (U1)."""

from collections.abc import AsyncGenerator
from typing import Any

import asyncpg
import httpx2
import pytest
from structlog.testing import capture_logs

from placet.auth import Principal
from placet.ingress.domain import READ
from placet.ingress.http import Api

Told = tuple[int, str, str] | None


class Store:
    """Every conversation is the caller's."""

    async def owns(self, who: Principal, conversation_id: str) -> bool:
        return True


class Verifier:
    """Believes everybody, until a point in time."""

    def __init__(self, until: float) -> None:
        self._until = until

    async def verify(self, token: str) -> Principal:
        return Principal("t1", "alice", frozenset({READ}), self._until)


class Live:
    """Gives one event and silence, then is cut off; remembers its streams, so that nothing but a close ends them."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.streams: list[AsyncGenerator[Told]] = []
        self.left = 0

    def follow(self, store: Store, tenant: str, conversation_id: str, after: int) -> AsyncGenerator[Told]:
        self.streams.append(self._told())
        return self.streams[-1]

    async def _told(self) -> AsyncGenerator[Told]:
        try:
            yield 1, "turn.changed.v1", "{}"
            yield None
            if self._error:
                raise self._error
        finally:
            self.left += 1


async def followed(live: Any, *, until: float) -> str:
    """All that a viewer of a stream is told."""
    store: Any = Store()
    verifier: Any = Verifier(until)
    nothing: Any = None
    app = Api(store, live, verifier, nothing, nothing, answer_seconds=1, max_body=1024).app()
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://placet.example") as client:
        return (await client.get("/v1/conversations/conv_1/events", headers={"Authorization": "Bearer t"})).text


@pytest.mark.req("U1", "T1")
async def test_a_stream_that_ends_with_its_token_is_left_at_once() -> None:
    live = Live()
    assert await followed(live, until=0) == ""
    assert (len(live.streams), live.left) == (1, 1)


@pytest.mark.req("U1", "M5")
@pytest.mark.parametrize("error", [ConnectionResetError(), asyncpg.AdminShutdownError(), asyncpg.InternalClientError()])
async def test_a_stream_whose_database_goes_away_ends_so_that_the_viewer_comes_back(error: Exception) -> None:
    with capture_logs() as logs:
        told = await followed(Live(error), until=2**40)
    assert told == "id: 1\nevent: turn.changed.v1\ndata: {}\n\n: still here\n\n"
    assert [(entry["event"], entry["error"]) for entry in logs] == [("stream.ended", type(error).__name__)]
