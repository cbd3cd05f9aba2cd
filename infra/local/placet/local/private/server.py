"""What every private server can do: start, die, stand still and come back with what it had."""

import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

from placet.local.errors import BackingError, NotThisWay
from placet.local.logins import until
from placet.local.private import guard
from placet.local.private.scratch import Scratch


class PrivateServer(ABC):
    """A server of our own on 127.0.0.1, with one port and one data directory over all its restarts.

    Not safe for use from several threads at once.
    """

    name: ClassVar[str]
    patience: ClassVar[float]
    """Seconds until a start that does not get to a login is given up. Generous: a machine may be busy."""
    orderly: ClassVar[int] = signal.SIGKILL
    """The signal that ends it quickly at the end of a run."""

    def __init__(self, scratch: Scratch, *, durable: bool = False) -> None:
        self.durable = durable
        self.port = scratch.free_port()
        self._scratch = scratch
        self._home = scratch.folder(self.name)
        self._process: subprocess.Popen[bytes] | None = None
        self._prepare()

    @classmethod
    @contextmanager
    def owned(cls, *, durable: bool = False) -> Generator[Self]:
        """A started server for one caller, who may do with it what he likes; removed at the end of the block."""
        with Scratch() as scratch:
            server = cls(scratch, durable=durable)
            server.start()
            yield server

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients log in as administrator."""

    @abstractmethod
    def log_in(self) -> None:
        """Log in once by the server's own protocol. Raises `NotThisWay` when it does not answer as it should."""

    def start(self) -> None:
        """Start it and return when a login works. Raises `BackingError` with the end of its log when none does."""
        assert self._process is None, f"{self.name} is running"
        self._process = self._scratch.spawn(self._command(), self._environment(), self._log, self.orderly)
        try:
            until(self.log_in, within=self.patience, what=f"private {self.name} did not start", unless=self._exited)
        except NotThisWay as error:
            raise BackingError(f"{error}\n{self._log.read_text(errors='replace')[-1500:]}") from error

    def kill(self) -> None:
        """SIGKILL, to the server and all its children; return when they are gone. Nothing of its data is removed."""
        self._scratch.kill(self._running())
        self._process = None

    def pause(self) -> None:
        """Let it stand still (SIGSTOP): connections stay open and nobody answers. Returns when it does."""
        guard.stop_family(self._running().pid)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        guard.signal_family(self._running().pid, signal.SIGCONT)

    def restart(self) -> None:
        """Kill it if it runs, and start it on the same port and data."""
        if self._process:
            self.kill()
        self.start()

    @abstractmethod
    def _prepare(self) -> None:
        """Make the data directory and the configuration, once."""

    @abstractmethod
    def _command(self) -> list[str | Path]: ...

    @abstractmethod
    def _environment(self) -> dict[str, str]: ...

    @property
    def _log(self) -> Path:
        return self._home / "output.log"

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process, f"{self.name} is not running"
        return self._process

    def _exited(self) -> str | None:
        # Not asked of the process object, which would free the number for another process while the guard watches it.
        return None if self._running().pid in guard.alive() else "it ended by itself"
