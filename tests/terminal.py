"""A terminal for the `placet` command, and what may stand between it and ingress."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from placet.local.system import System


def _hear_ctrl_c() -> None:
    """Tests that run in the background of a shell are started deaf to SIGINT, and would pass that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str


@dataclass
class Terminal:
    """A folder with a profile, and an environment without anything of ours."""

    folder: Path
    more: dict[str, str] = field(default_factory=dict[str, str])

    async def begin(self, *arguments: str, out: int | IO[bytes] = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
        """Start a command, which prints to `out`."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PLACET_")}
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "placet.client", *arguments),
            cwd=self.folder,
            env=clean | self.more,
            stdin=pipe,
            stdout=out,
            stderr=pipe,
            preexec_fn=_hear_ctrl_c,
        )

    async def run(self, *arguments: str, typed: str = "") -> Ran:
        """Run a command to its end."""
        return await end(await self.begin(*arguments), typed)

    async def run_all(self, *commands: list[str]) -> list[Ran]:
        """Run commands side by side, each to its end."""
        return await asyncio.gather(*(self.run(*command) for command in commands))

    async def json(self, *arguments: str) -> Any:
        """What a command prints for machines."""
        ran = await self.run(*arguments, "--json")
        assert (ran.code, ran.err) == (0, "")
        return json.loads(ran.out)


async def end(process: asyncio.subprocess.Process, typed: str = "", said: str = "") -> Ran:
    """Wait for the end of a command, of which `said` was read before."""
    out, err = await process.communicate(typed.encode(errors="surrogateescape"))
    assert process.returncode is not None
    return Ran(process.returncode, said + (out or b"").decode(), err.decode())


async def until(process: asyncio.subprocess.Process, text: str) -> str:
    """What a command says up to the line with this text."""
    assert process.stdout
    said = ""
    while text not in said:
        line = (await process.stdout.readline()).decode()
        assert line, f"it ended without saying {text!r}: {said}"
        said += line
    return said


@dataclass
class Between:
    """Stands between the command and ingress, and can cut what goes through it."""

    url: str
    open: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    def cut(self) -> None:
        """Break every connection."""
        for writer in self.open:
            writer.transport.abort()
        self.open.clear()


@asynccontextmanager
async def between(system: System) -> AsyncGenerator[Between]:
    """Something between the command and ingress."""
    at = urlsplit(system.url)

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to, onward = await asyncio.open_connection(at.hostname, at.port)
        made.open.extend((writer, onward))
        await asyncio.gather(carry(reader, onward), carry(to, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made = Between(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server:
        yield made
        made.cut()


@asynccontextmanager
async def answering(*answers: bytes, heard: list[str] | None = None) -> AsyncGenerator[str]:
    """Something that is not Placet: gives these answers one after another; an empty one breaks the connection.

    `heard` gets the first line of each request.
    """
    left = list(answers)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if heard is not None:
            heard.append(head.decode().splitlines()[0])
        writer.write(left.pop(0))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def http(status: str, body: str) -> bytes:
    """An HTTP answer."""
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
