"""The CRM's connector in tests: commands to give it, and a provider that answers with whatever bytes it is told."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from placet.canonical import CanonicalCommand
from placet.executor.connectors.crm import Crm

TOKEN = "secret"
KEY = "op_1"
NOTE = CanonicalCommand("t1", "alice", "crm.note.create", 1, "C-42", {"customer_id": "C-42", "body": "hello"}, "1")
GET = replace(NOTE, action="crm.customer.get", arguments={"customer_id": "C-42"}, expected_revision=None)
EXPORT = replace(NOTE, action="crm.export", resource=None, arguments={"format": "json"}, expected_revision=None)


@asynccontextmanager
async def connected(url: str, *, token: str = TOKEN, replay_seconds: int = 3600, timeout: float = 10) -> AsyncGenerator[Crm]:
    """A connector that is started for a block."""
    made = Crm(url, token, replay_seconds=replay_seconds, timeout=timeout)
    await made.start()
    yield made
    await made.stop()


@asynccontextmanager
async def answering(body: bytes, *, etag: str = "", announced: int | None = None) -> AsyncGenerator[Crm]:
    """A connector whose provider sends this body with status 200, and then waits for the other side to hang up.

    It may have `announced` a body of another length.
    """
    head = f"Content-Length: {len(body) if announced is None else announced}" + (f"\r\nETag: {etag}" if etag else "")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\n\r\n".encode("latin-1") + body)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        async with connected(f"http://{host}:{port}") as crm:
            yield crm
