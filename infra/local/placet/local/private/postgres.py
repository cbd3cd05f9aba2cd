"""A private PostgreSQL."""

import os
import signal
from pathlib import Path

from placet.local import logins
from placet.local.private import binaries
from placet.local.private.server import PrivateServer


class PrivatePostgres(PrivateServer):
    """PostgreSQL with the superuser `postgres`, trusted from 127.0.0.1.

    Committed data survives `kill` always; with `durable` it is also synced to the disk, as in production.
    """

    name = "postgres"
    patience = 60.0
    orderly = signal.SIGQUIT

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def log_in(self) -> None:
        logins.log_in_to_postgres(self.url)

    def _prepare(self) -> None:
        self._programs = binaries.postgres_folder(self._scratch)
        self._data = self._home / "data"
        self._scratch.run(
            [
                self._programs / "initdb", "-D", self._data, "-U", "postgres", "-A", "trust",
                "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions",
            ],
            self._environment(),
        )  # fmt: skip

    def _command(self) -> list[str | Path]:
        settings = [option for name, value in self._settings().items() for option in ("-c", f"{name}={value}")]
        return [self._programs / "postgres", "-D", self._data, "-p", str(self.port), *settings]

    def _settings(self) -> dict[str, str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "300",
            "shared_buffers": "64MB",
        }
        if not self.durable:
            # synchronous_commit stays on: it is what lets a commit outlive the server's process.
            settings |= {"fsync": "off", "full_page_writes": "off"}
        return settings

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", ""), "HOME": str(self._home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
