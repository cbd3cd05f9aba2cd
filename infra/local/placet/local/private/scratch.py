"""A throw-away directory and the processes that live in it."""

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict

from placet.local.errors import BackingError
from placet.local.private import guard

PORTS = range(20000, 32000)
"""Below the ports of outgoing connections, so that a server that restarts finds its own still free."""

# Not the seeded generator: test runs side by side may share its seed.
_untried = iter(random.SystemRandom().sample(PORTS, k=len(PORTS)))


class _Account(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class Scratch:
    """A directory and its processes, all gone when this process is gone, in whatever way it went.

    As root, the processes run as `nobody`, because PostgreSQL refuses root; as anybody else, as the caller.
    """

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="placet-"))
        self.directory.chmod(0o755)
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(self.directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def folder(self, *names: str) -> Path:
        """A directory under this one that only the account of the servers can read; made if it is missing."""
        path = self.directory.joinpath(*names)
        path.mkdir(mode=0o700, exist_ok=True)
        self._give(path)
        return path

    def write(self, path: Path, text: str, mode: int = 0o600) -> None:
        """Write a file for the servers to read."""
        path.write_text(text)
        path.chmod(mode)
        self._give(path)

    def run(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        """Run a command to its end. Raises `BackingError` with its last words when it fails."""
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd="/", **self._as_account(),
        )  # fmt: skip
        if done.returncode:
            raise BackingError(f"{command[0]} failed: {done.stdout.decode(errors='replace')[-800:]}")

    def spawn(
        self, command: Sequence[str | Path], environment: Mapping[str, str], log: Path, orderly: int = signal.SIGKILL
    ) -> subprocess.Popen[bytes]:
        """Start a process in a group of its own. `orderly` is the signal for its quickest end that leaves nothing."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, cwd="/", **self._as_account(),
            )  # fmt: skip
        self.adopt(process, orderly)
        return process

    def adopt(self, process: subprocess.Popen[bytes], orderly: int = signal.SIGKILL) -> None:
        """Let the guard end a process that was started elsewhere, with all that it starts."""
        self._processes[process.pid] = process
        self._tell_guard(f"+{process.pid} {orderly:d}")

    def release_ended(self) -> None:
        """Tell the guard which processes have ended, so that it never ends a stranger who got their number."""
        for pid in [pid for pid, process in self._processes.items() if process.poll() is not None]:
            del self._processes[pid]
            self._tell_guard(f"-{pid}")

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """SIGKILL the process and everything it started; return when all are gone."""
        guard.kill_family(process.pid)
        process.wait()
        self._processes.pop(process.pid, None)
        self._tell_guard(f"-{process.pid}")

    def reachable(self, package: Path, file: Path) -> Path:
        """`file` of `package`, or its copy in here when the servers' account may not enter the folders above it."""
        if self._account is None or all(folder.stat().st_mode & 0o001 for folder in file.parents):
            return file
        # The shared libraries of a wheel lie beside the package and are found by a relative path.
        for source in (package, package.with_name(f"{package.name}.libs")):
            copy = self.directory / "bin" / source.name
            if source.is_dir() and not copy.exists():
                shutil.copytree(source, copy, symlinks=True)
        subprocess.run(["chmod", "-R", "a+rX", self.directory / "bin"], check=True)
        return self.directory / "bin" / file.relative_to(package.parent)

    def free_port(self) -> int:
        """A port of 127.0.0.1 that nobody listens on, given out once by this process."""
        for port in _untried:
            with socket.socket() as listener, contextlib.suppress(OSError):
                listener.bind(("127.0.0.1", port))
                return port
        raise BackingError(f"no free port from {PORTS.start} to {PORTS.stop}")

    def close(self) -> None:
        """End every process and remove the directory."""
        assert self._guard.stdin
        self._guard.stdin.close()
        self._guard.wait()
        for process in self._processes.values():
            process.wait()

    def _tell_guard(self, line: str) -> None:
        assert self._guard.stdin
        self._guard.stdin.write(f"{line}\n".encode())
        self._guard.stdin.flush()

    def _give(self, path: Path) -> None:
        if self._account:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _as_account(self) -> _Account:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
