"""A private Redis."""

import os
from pathlib import Path

from placet.local import logins
from placet.local.private import binaries
from placet.local.private.server import PrivateServer


class PrivateRedis(PrivateServer):
    """Redis or Valkey without a password. What it holds survives `kill` only with `durable`."""

    name = "redis"
    patience = 30.0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def log_in(self) -> None:
        logins.log_in_to_redis(self.url)

    def _prepare(self) -> None:
        self._program = binaries.redis_server(self._scratch)

    def _command(self) -> list[str | Path]:
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self._home),
            "save": "",
            "appendonly": "yes" if self.durable else "no",
            "loglevel": "warning",
        }
        return [self._program, *(word for name, value in settings.items() for word in (f"--{name}", value))]

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", "")}
