"""Health of a process: `/healthz` says that it lives, `/readyz` that its parts have started and go on."""

from collections.abc import Awaitable, Callable
from typing import Any

from placet.service.server import Server

Send = Callable[[dict[str, Any]], Awaitable[None]]


class Health:
    """What a supervisor is told."""

    def __init__(self) -> None:
        self.ready = False

    async def __call__(self, scope: dict[str, Any], _receive: Any, send: Send) -> None:
        """The ASGI application: 204 for yes, 503 for not ready, 404 for any other path."""
        known = {"/healthz": 204, "/readyz": 204 if self.ready else 503}
        await send({"type": "http.response.start", "status": known.get(scope["path"], 404), "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def server(self, host: str, port: int) -> Server:
        """The part that serves it."""
        return Server(self, host, port, name="health")
