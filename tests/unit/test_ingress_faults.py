"""What ingress does when something goes wrong in it: a fault is logged by its place, and not with what it is about (O3)."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import httpx2
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs
from structlog.typing import EventDict

from placet.ingress.problems import answer_problems
from placet.service.server import Server


def fault() -> asyncpg.PostgresError:
    """What a database says of a row that it does not take."""
    error = asyncpg.NotNullViolationError('null value in column "state"')
    error.detail = "Failing row contains (CANARY)."
    return error


async def row() -> None:
    """A route that meets such a row."""
    raise fault()


async def stream() -> StreamingResponse:
    """A route that meets it in the middle of its answer."""

    async def pieces() -> AsyncGenerator[bytes]:
        yield b"one"
        raise fault()

    return StreamingResponse(pieces())


async def teapot() -> None:
    """A route that the frame has something to say about."""
    raise HTTPException(418, "this is a teapot")


@dataclass
class Served:
    """The application behind a real server, and what both of them log."""

    url: str
    logs: list[EventDict]
    _caught: pytest.LogCaptureFixture
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def faults(self) -> list[EventDict]:
        """The faults that were logged."""
        return [entry for entry in self.logs if entry["event"] == "http.failed"]

    def server_logs(self) -> list[str]:
        """What the server says on its own account, tracebacks and all."""
        return [self._caught.handler.format(record) for record in self._caught.records]


@pytest.fixture
async def served(caplog: pytest.LogCaptureFixture) -> AsyncGenerator[Served]:
    app = FastAPI()
    answer_problems(app)
    for route in (row, stream, teapot):
        app.add_api_route(f"/{route.__name__}", route, response_model=None)

    @app.post("/body")
    async def body(request: Request) -> int:  # pyright: ignore[reportUnusedFunction]
        made.begun.set()
        return len(await request.body())

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            made.ended.set()

    with capture_logs() as logs:
        server = Server(watched, "127.0.0.1", 0)
        logging.getLogger("uvicorn").addHandler(caplog.handler)
        await server.start()
        made = Served(logs[0]["url"], logs, caplog)
        yield made
        await server.stop()
        logging.getLogger("uvicorn").removeHandler(caplog.handler)


@pytest.mark.req("O3", "U1")
async def test_a_fault_is_logged_with_its_place_and_without_the_row(served: Served) -> None:
    async with httpx2.AsyncClient(base_url=served.url) as client:
        response = await client.get("/row")
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    (said,) = served.faults()
    assert (said["path"], said["error"]) == ("/row", 'NotNullViolationError: null value in column "state"')
    assert "in row\n" in said["frames"]
    assert "CANARY" not in f"{served.logs}{response.text}"
    assert served.server_logs() == []


@pytest.mark.req("O3", "U1")
async def test_a_fault_in_the_middle_of_an_answer_cuts_it_off_and_is_logged_alike(served: Served) -> None:
    async with httpx2.AsyncClient(base_url=served.url) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get("/stream")
    (said,) = served.faults()
    assert (said["path"], "in pieces\n" in said["frames"]) == ("/stream", True)
    assert "CANARY" not in str(served.logs)
    assert "CANARY" not in str(served.server_logs())


@pytest.mark.req("U1", "O3")
async def test_who_hangs_up_in_the_middle_of_a_body_is_no_fault_of_ours(served: Served) -> None:
    url = httpx2.URL(served.url)
    _, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(b"POST /body HTTP/1.1\r\nHost: placet.example\r\nContent-Length: 100\r\n\r\n{")
    await served.begun.wait()
    writer.close()
    await served.ended.wait()
    assert (served.faults(), served.server_logs()) == ([], [])


@pytest.mark.req("U1")
async def test_what_the_frame_refuses_by_itself_is_told_in_its_words(served: Served) -> None:
    async with httpx2.AsyncClient(base_url=served.url) as client:
        refused, unknown = await client.get("/teapot"), await client.post("/nowhere")
    assert [refused.json()[member] for member in ("status", "code", "detail")] == [418, "refused", "this is a teapot"]
    assert unknown.json()["detail"] == "the API has no POST /nowhere"


START = """
import asyncio, sys
from types import SimpleNamespace
from placet.ingress.live import Live
from placet.service.runner import serve
settings = SimpleNamespace(service="ingress", health_port=None)
sys.exit(asyncio.run(serve(lambda settings: [Live(URL, "placet")], settings)))
"""


@pytest.mark.req("O3")
@pytest.mark.parametrize("url", ["redis://h:CANARY", "redis://:CANARY/of@h:6379", "redis://h?socket_timeout=CANARY"])
def test_an_address_of_redis_that_is_none_ends_the_start_and_is_named(url: str) -> None:
    command: Any = [sys.executable, "-c", START.replace("URL", repr(url))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "setting PLACET_REDIS_URL: ValueError: this is no URL of a Redis\n"
