"""The HTTP server as a part of the service: it starts last and stops first."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

import structlog
import uvicorn
from fastapi import FastAPI

log = structlog.get_logger()


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """The service handles its signals itself."""
        yield


class Server:
    """uvicorn inside our own loop, without its signal handling."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        self._listener = (host, port)
        self._server = _Uvicorn(
            uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=3, lifespan="off")
        )

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        listener = socket.create_server(self._listener)
        host, port = listener.getsockname()[:2]
        self._task = asyncio.create_task(self._server.serve([listener]))
        log.info("http.listening", action="http.listening", url=f"http://{host}:{port}")

    async def stop(self) -> None:
        """Finish the requests under way; streams are cut, and clients come back with Last-Event-ID."""
        self._server.should_exit = True
        await self._task
