"""A process of ours: started with its own environment, its output in a file, awaited by what it says, killed for real."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

INHERITED = ("PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH", "TMPDIR", "SSL_CERT_FILE")
"""What a service gets of our environment: nothing that could carry a credential to a service that must not have it."""


class DidNotStart(Exception):
    """A process ended, or said nothing, instead of being ready; the text ends with what it wrote."""

    def in_one_line(self) -> str:
        """What did not start, and the last that it wrote besides log entries: there a service says what it lacks."""
        first, *written = [line for line in str(self).splitlines() if line and not line.startswith("{")]
        return " ".join([first, *written[-1:]])


class Process:
    """One process of a run."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name, self.log = name, log
        self._from = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            self.popen = subprocess.Popen(
                command,
                env={each: os.environ[each] for each in INHERITED if each in os.environ} | dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, or None while it runs."""
        return self.popen.poll()

    def lines(self) -> Iterator[dict[str, Any]]:
        """The JSON lines that this process, not an earlier one with the same log, has written."""
        with self.log.open("rb") as output:
            output.seek(self._from)
            for line in output:
                if line.startswith(b"{") and line.endswith(b"\n"):
                    yield json.loads(line)

    async def said(self, action: str, *, within: float = 30.0) -> dict[str, Any]:
        """The first line with this action, or with a field of this name. Raises DidNotStart when the process ends, or the
        time, before it comes.
        """
        end = asyncio.get_running_loop().time() + within
        while True:
            for line in self.lines():
                if line.get("action") == action or action in line:
                    return line
            if self.returncode is not None or asyncio.get_running_loop().time() > end:
                raise DidNotStart(f"{self.name} did not say {action} (exit status {self.returncode}):\n{self.tail()}")
            await asyncio.sleep(0.02)

    def tail(self, characters: int = 2000) -> str:
        """The end of what it wrote."""
        with self.log.open("rb") as output:
            output.seek(self._from)
            return output.read().decode(errors="replace")[-characters:]

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.popen.kill()
        self.popen.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.popen.send_signal(number)

    async def ended(self, within: float = 30.0) -> int:
        """The exit status, once it has ended by itself. Raises subprocess.TimeoutExpired."""
        return await asyncio.to_thread(self.popen.wait, within)

    async def terminate(self) -> int:
        """SIGTERM, and the exit status; SIGKILL when that does not help in time."""
        if self.returncode is None:
            self.popen.terminate()
        try:
            return await self.ended(25)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def rss(self) -> int:
        """Resident memory in bytes."""
        return psutil.Process(self.pid).memory_info().rss


def service_command(service: str) -> list[str]:
    """The command that serves a service, by the Python that runs us."""
    return [sys.executable, "-m", f"placet.{service}", "serve"]
