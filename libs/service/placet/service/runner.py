"""Starting and stopping a service: its parts in order, and in the opposite order back."""

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

import structlog
import uvloop
from asyncpg import PostgresError

from placet.service.health import Health
from placet.service.logs import start_logging
from placet.service.migrations import MigrationChanged, load_migrations, migrate
from placet.service.settings import MigrationSettings, ServiceSettings, load_settings
from placet.telemetry import start_telemetry, stop_telemetry

log = structlog.get_logger()


class Part(Protocol):
    """Something that runs beside the rest of a service: a pool, a consumer, a loop."""

    async def start(self) -> None:
        """Return when it works; raise when it cannot."""
        ...

    async def stop(self) -> None:
        """Finish what is under way, and return."""
        ...


class Alarm:
    """How a part ends the process: the first reason counts."""

    def __init__(self) -> None:
        self._reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def raise_it(self, reason: str) -> None:
        """Ask for the end of the process, for this reason."""
        if not self._reason.done():
            self._reason.set_result(reason)

    async def wait(self) -> str:
        """Return the reason once there is one."""
        return await asyncio.shield(self._reason)


Build = Callable[[Alarm], Sequence[Part]]


def main(service: str, build: Build, settings: type[ServiceSettings], migrations: Sequence[str] = (), *, about: str) -> None:
    """The command of a service: `serve`, and, where it owns a database, `migrate` and `check`."""
    parser = argparse.ArgumentParser(prog=f"python -m placet.{service}", description=about)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("serve", help="run the service until SIGTERM or SIGINT")
    if migrations:
        verbs.add_parser("migrate", help="bring the database's schema up to date, as its owner")
    verbs.add_parser("check", help="say whether the settings are whole, then end")
    verb = parser.parse_args().verb
    if verb == "migrate":
        sys.exit(asyncio.run(_migrate(service, migrations)))
    loaded = load_settings(settings)
    if verb == "check":
        print(f"{service}: settings are whole")
        return
    start_logging(service, loaded.log_level)
    start_telemetry(service)
    sys.exit(uvloop.run(serve(service, build, loaded)))


async def serve(service: str, build: Build, settings: ServiceSettings) -> int:
    """Run the parts until a signal (0) or until one of them raises the alarm (1)."""
    alarm = Alarm()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with AsyncExitStack() as started:
            health = Health()
            watched = [health.server(settings.health_host, settings.health_port)] if settings.health_port else []
            for part in (*watched, *build(alarm)):
                await _started(part)
                started.push_async_callback(part.stop)
            _settle_memory()
            health.ready = True
            log.info("service.started", action="service.started", service=service)
            ended = await _until(stop, alarm)
            health.ready = False
            return ended
    finally:
        log.info("service.stopped", action="service.stopped", service=service)
        stop_telemetry()


def _settle_memory() -> None:
    """What a service has built at its start stays; the collector need not look at it again, and can look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _started(part: Part) -> None:
    """Start a part; what it cannot do is said in one line, with the setting that it follows. Exits with 1."""
    try:
        await part.start()
    except Exception as error:
        setting = getattr(part, "setting", "")
        print(f"setting {setting}: " * bool(setting) + f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        sys.exit(1)


async def _until(stop: asyncio.Event, alarm: Alarm) -> int:
    signalled = asyncio.create_task(stop.wait())
    alarmed = asyncio.create_task(alarm.wait())
    await asyncio.wait({signalled, alarmed}, return_when=asyncio.FIRST_COMPLETED)
    if signalled.done():
        alarmed.cancel()
        return 0
    signalled.cancel()
    log.error("service.alarm", action="service.alarm", reason=alarmed.result())
    return 1


async def _migrate(service: str, packages: Sequence[str]) -> int:
    settings = load_settings(MigrationSettings)
    try:
        applied = await migrate(settings.owner_url, settings.service_role, load_migrations(*packages))
    except (OSError, PostgresError, MigrationChanged) as error:
        print(f"{service}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"{service}: {len(applied)} migrations applied" if applied else f"{service}: the schema is up to date")
    return 0


async def loop_forever(name: str, run_once: Callable[[], Awaitable[int]], every: float) -> None:
    """Run a piece of work again and again; `every` seconds lie between runs that found nothing. Its failures are logged."""
    while True:
        found = 0
        try:
            found = await run_once()
        except Exception as error:
            log.warning("loop.failed", action="loop.failed", loop=name, error=f"{type(error).__name__}: {error}")
        if not found:
            await asyncio.sleep(every)


class Loop:
    """A part that runs `run_once` for ever; tests call `run_once` themselves."""

    def __init__(self, name: str, run_once: Callable[[], Awaitable[int]], every: float) -> None:
        self._name, self._run_once, self._every = name, run_once, every

    async def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(loop_forever(self._name, self._run_once, self._every))

    async def stop(self) -> None:
        """End after the step under way."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
