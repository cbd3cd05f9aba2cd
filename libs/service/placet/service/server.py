"""An HTTP server as a part of a service."""

import asyncio
import errno
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import structlog
import uvicorn

log = structlog.get_logger()

OF_A_PORT = (errno.EADDRINUSE, errno.EACCES)
"""Errors of listening that another port mends; the others are those of the host."""


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """The service handles its signals itself."""
        yield


class Server:
    """uvicorn inside our own loop, without its signal handling."""

    def __init__(self, app: Any, host: str, port: int, *, name: str = "http") -> None:
        """Serve an ASGI application; port 0 takes a free one, and the log says which."""
        self._name = name
        self.setting = f"PLACET_{name}_HOST".upper()
        self._listener = (host, port)
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_config=None,  # its records go where all others go, as JSON
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=3,
                timeout_keep_alive=75,
                lifespan="off",
            )
        )

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken or the host is not ours; `setting` then names which."""
        try:
            listener = socket.create_server(self._listener)
        except OSError as error:
            if error.errno in OF_A_PORT:
                self.setting = f"PLACET_{self._name}_PORT".upper()
            raise
        host, port = listener.getsockname()[:2]
        self.running = asyncio.create_task(self._server.serve([listener]))
        log.info(f"{self._name}.listening", action=f"{self._name}.listening", url=f"http://{host}:{port}")

    async def stop(self) -> None:
        """Finish the requests under way; streams are cut, and clients come back with Last-Event-ID."""
        self._server.should_exit = True
        await asyncio.gather(self.running, return_exceptions=True)
