"""A line to the broker: a connection that comes up in time or leaves nothing, and goes down in time."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Generic, TypeVar

import aio_pika
import structlog
from aio_pika.connection import make_url
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from yarl import URL

CONNECT_SECONDS = 30.0
"""How long a broker may take to let us in: one that is frozen takes the connection and says nothing."""

CLOSE_SECONDS = 5.0
"""How long a broker may take to hear that we go; then the line is torn down."""

log = structlog.get_logger()

C = TypeVar("C", bound=aio_pika.Connection)


class Line(TransportFactory, Generic[C]):
    """A connection of the service's own broker user; `connection` is what the client library makes of it.

    aiormq waits without end for the last bytes to leave, and a line that has fallen silent takes none: so we keep hold of
    its transport. What a client library leaves of an attempt that is cut short tries again for ever: so we close it.
    """

    def __init__(self, kind: type[C], url: str, name: str, **more: Any) -> None:
        self.connection = kind(make_url(url), client_properties={"connection_name": name}, **more)
        self.connection.kwargs["transport_factory"] = self  # aio-pika hands them on to aiormq
        self._writer: asyncio.StreamWriter | None = None

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open the transport, for aiormq."""
        factory = TLSTransportFactory() if url.scheme == "amqps" else TCPTransportFactory()
        reader, self._writer = await factory.create(url, **kwargs)
        return reader, self._writer

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Connect, and let the body make its channels; what fails, or is not done in CONNECT_SECONDS, is closed.

        Raises what aio-pika raises when the broker does not let us in, ConnectionError when the line is lost again, and
        TimeoutError when the broker says nothing.
        """
        try:
            with lost_when_cancelled():
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self.connection.connect(timeout=CONNECT_SECONDS)
                    yield
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Take leave of the broker, go without when it does not answer, and leave the client library if it waits on."""
        closing = asyncio.create_task(self.connection.close())
        await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        if self._writer and not closing.done():
            self._writer.transport.abort()
            await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        if closing.done():
            await closing
        else:
            closing.cancel()
            log.warning("line.abandoned", action="line.abandoned", user=self.user)

    @property
    def user(self) -> str:
        """The broker user that we are."""
        return self.connection.url.user or ""


@contextmanager
def lost_when_cancelled() -> Generator[None]:
    """aiormq cancels whoever waits for it when a heartbeat is lost: a lost connection, and nobody's wish to end."""
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ConnectionError("connection lost") from None
