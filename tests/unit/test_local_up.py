"""`make up`: what does not start is one line, Ctrl-C counts at any time, and the profile ends with the run (U5)."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from placet.local import __main__ as command
from placet.local import up
from placet.local.backing import Backing
from placet.local.broker_admin import ManagementApi
from placet.local.issuer import Issuer
from placet.local.processes import DidNotStart

AMQP = "amqp://127.0.0.1:1"
NOWHERE = Backing(
    AMQP, "postgresql://127.0.0.1:1/postgres", "redis://127.0.0.1:1", ManagementApi("http://127.0.0.1:1", AMQP)
)


class Started:
    """A system at whose start somebody presses Ctrl-C: before it is up, or just after."""

    url, provider_url = "http://127.0.0.1:1", "http://127.0.0.1:2"

    def __init__(self, profile: Path, *, comes_up: bool) -> None:
        self.issuer, self.stopped, self.while_up = Issuer(), False, ""
        self._profile, self._comes_up = profile, comes_up

    async def start(self) -> None:
        signal.raise_signal(signal.SIGINT)
        if not self._comes_up:
            await asyncio.get_running_loop().create_future()

    @property
    def folder(self) -> str:
        """Asked for when it is up, to say where to look."""
        self.while_up = kept(self._profile)
        return "logs"

    async def stop(self) -> None:
        self.stopped = True


def kept(profile: Path) -> str:
    return profile.read_text() if profile.exists() else ""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / ".placet" / "profile.json"
    monkeypatch.setattr(up, "PROFILE", path)
    return path


def instead(monkeypatch: pytest.MonkeyPatch, started: Started) -> Started:
    @asynccontextmanager
    async def system(*_: object, **__: object) -> AsyncGenerator[Started]:
        yield started

    monkeypatch.setattr(up, "system", system)
    return started


async def test_ctrl_c_counts_while_the_services_start(
    profile: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = instead(monkeypatch, Started(profile, comes_up=False))
    await up.run_up(NOWHERE, 0)
    assert started.stopped
    assert kept(profile) == ""
    assert "Placet runs" not in capsys.readouterr().out


async def test_the_profile_ends_with_the_run(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = instead(monkeypatch, Started(profile, comes_up=True))
    await up.run_up(NOWHERE, 0)
    assert json.loads(started.while_up)["url"] == started.url
    assert started.stopped
    assert kept(profile) == ""


async def test_the_profile_of_another_run_stays(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = json.dumps({"url": "http://127.0.0.1:3", "tokens": {}})
    profile.parent.mkdir()

    def written_by_another(*_: object) -> None:
        profile.write_text(other)

    instead(monkeypatch, Started(profile, comes_up=True))
    monkeypatch.setattr(up, "write_profile", written_by_another)
    await up.run_up(NOWHERE, 0)
    assert kept(profile) == other


def run(monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str]) -> object:
    """The exit status of the command; nothing that it needs is there, and ingress does not start."""

    async def run_up(*_: object) -> None:
        log = 'setting PLACET_HTTP_PORT: OSError: taken\n{"action": "service.stopped"}\n'
        raise DidNotStart(f"ingress did not say service.started (exit status 1):\n{log}")

    @contextmanager
    def backing(**_: object) -> Generator[Backing]:
        yield NOWHERE

    monkeypatch.setattr(command, "backing", backing)
    monkeypatch.setattr(up, "run_up", run_up)
    monkeypatch.setattr(asyncio, "run", drive)
    monkeypatch.setattr(sys, "argv", ["placet.local", *arguments])
    with pytest.raises(SystemExit) as caught:
        command.main()
    return caught.value.code


def drive(work: Coroutine[Any, Any, None]) -> None:
    """Take the first step of a coroutine, which ends it."""
    work.send(None)


def test_what_does_not_start_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, ["up"]) == 1
    said = "placet: ingress did not say service.started (exit status 1): setting PLACET_HTTP_PORT: OSError: taken\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("port", ["99999", "-1", "http"])
def test_a_port_that_is_none_is_refused_before_anything_starts(
    port: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, ["up", "--port", port]) == 2
    assert "--port" in capsys.readouterr().err
