"""A line to the broker that a test can cut, let fall silent, or end as the broker would."""

import asyncio
import contextlib
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from pamqp.commands import Connection
from pamqp.frame import marshal

from placet.local.addresses import broker_port

OUT_OF_PLACE = marshal(Connection.Close(504, "CHANNEL_ERROR - expected 'channel.open'", 20, 40), 0)
"""What a broker says to a client that publishes on a channel which the broker has just closed."""


class Wire:
    """A TCP line to the broker that can be cut, and kept cut, without either end being asked."""

    def __init__(self, url: str, *, heartbeat: int = 60) -> None:
        """A line to the broker of this URL, over which clients ask for a heartbeat every so many seconds."""
        self._upstream = (urlsplit(url).hostname, broker_port(url))
        self._heartbeat = heartbeat
        self._writers: set[asyncio.StreamWriter] = set()
        self.open = True
        self.refuse_next = False
        """Whether whatever a client sends next is lost and its connection closed, as for a frame out of place."""
        self.connections = 0

    async def start(self) -> None:
        """Listen on a port of its own."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def through(self, url: str) -> str:
        """The same login, over this line."""
        parts = urlsplit(url)
        netloc = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{self.port}"
        return urlunsplit(parts._replace(netloc=netloc, query=f"heartbeat={self._heartbeat}"))

    def cut(self, *, open_again: bool = True) -> None:
        """Reset every connection; without `open_again`, refuse new ones too."""
        self.open = open_again
        for writer in self._writers:
            writer.transport.abort()

    def fall_silent(self) -> None:
        """Nothing comes through on the connections that are up, and neither end is told; new ones work."""
        for writer in self._writers:
            cast(asyncio.Transport, writer.transport).pause_reading()

    async def stop(self) -> None:
        """Cut for good."""
        self.cut(open_again=False)
        self._server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.open:
            writer.transport.abort()
            return
        self.connections += 1
        onward, outward = await asyncio.open_connection(*self._upstream)
        await asyncio.gather(self._pump(reader, outward, back=writer), self._pump(onward, writer))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: asyncio.StreamWriter | None = None
    ) -> None:
        self._writers.add(writer)
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if back and self.refuse_next:
                    self.refuse_next = False
                    back.write(OUT_OF_PLACE)
                    continue
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()
