"""Starting and stopping a service: its parts in order, and in the opposite order back."""

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar, runtime_checkable

import structlog
import uvloop
from asyncpg import PostgresError

from placet.service.health import Health
from placet.service.logs import first_line, start_logging
from placet.service.migrations import MigrationChanged, load_migrations, migrate
from placet.service.settings import MigrationSettings, ServiceSettings, load_settings
from placet.telemetry import start_telemetry, stop_telemetry

log = structlog.get_logger()


class Part(Protocol):
    """Something that runs beside the rest of a service: a pool, a consumer, a loop.

    When one that is `Running` ends by itself, so does the process.
    """

    async def start(self) -> None:
        """Return when it works; raise when it cannot."""
        ...

    async def stop(self) -> None:
        """Finish what is under way, and return."""
        ...


@runtime_checkable
class Running(Protocol):
    """A part whose work goes on."""

    @property
    def running(self) -> asyncio.Future[None]:
        """The work: it ends when the part is stopped."""
        ...


S = TypeVar("S", bound=ServiceSettings)
Build = Callable[[S], Sequence[Part]]


def main(build: Build[S], settings: type[S], packages: Sequence[str] = (), *, about: str) -> None:
    """The command of a service: `serve` and `check`, and `migrate` where it owns a database.

    `packages` are those whose migrations make up its schema.
    """
    service = settings.service
    parser = argparse.ArgumentParser(prog=f"python -m placet.{service}", description=about)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("serve", help="run the service until SIGTERM or SIGINT")
    if packages:
        verbs.add_parser("migrate", help="bring the database's schema up to date, as its owner")
    verbs.add_parser("check", help="say whether the settings are whole, then end")
    verb = parser.parse_args().verb
    if verb == "migrate":
        sys.exit(asyncio.run(_migrate(service, packages)))
    loaded = load_settings(settings)
    if verb == "check":
        print(f"{service}: settings are whole")
        return
    start_logging(service, loaded.log_level)
    start_telemetry(service)
    sys.exit(uvloop.run(serve(build, loaded)))


async def serve(build: Build[S], settings: S) -> int:
    """Run the parts until a signal (0), or until one of them cannot start or ends by itself (1)."""
    health, stop = Health(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    watched = [health.server(settings.health_host, settings.health_port)] if settings.health_port else []
    try:
        async with AsyncExitStack() as started:
            parts = [*watched, *build(settings)]
            ended = await _before(stop, _start(parts, started))
            if ended is not None:
                return ended
            _settle_memory()
            health.ready = True
            log.info("service.started", action="service.started", service=settings.service)
            ended = await _before(stop, _alarmed(parts))
            health.ready = False
            return ended or 0
    finally:
        log.info("service.stopped", action="service.stopped", service=settings.service)
        stop_telemetry()


async def _before(stop: asyncio.Event, work: Coroutine[Any, Any, int | None]) -> int | None:
    """What the work answers, or 0 when we are asked to stop before it does."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return 0


async def _start(parts: Sequence[Part], started: AsyncExitStack) -> int | None:
    """Start the parts. What one cannot do is said in one line, with the setting that it follows; then the answer is 1."""
    for part in parts:
        try:
            await part.start()
        except Exception as error:
            setting = getattr(part, "setting", "")
            print(f"setting {setting}: " * bool(setting) + f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return 1
        started.push_async_callback(part.stop)
    return None


async def _alarmed(parts: Sequence[Part]) -> int:
    """1, once a part has ended by itself: what goes on without it looks healthy and is not."""
    running = {part: part.running for part in parts if isinstance(part, Running)}
    await asyncio.wait(running.values(), return_when=asyncio.FIRST_COMPLETED)
    for part, its in running.items():
        if its.done():
            log.error("service.alarm", action="service.alarm", part=type(part).__name__, reason=_why(its))
    return 1


def _why(ended: asyncio.Future[None]) -> str:
    error = None if ended.cancelled() else ended.exception()
    return first_line(error) if error else "it has ended"


def _settle_memory() -> None:
    """What a service has built at its start stays; the collector need not look at it again, and can look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


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
            log.warning("loop.failed", action="loop.failed", loop=name, error=first_line(error))
        if not found:
            await asyncio.sleep(every)


class Loop:
    """A part that runs `run_once` for ever; tests call `run_once` themselves."""

    def __init__(self, name: str, run_once: Callable[[], Awaitable[int]], every: float) -> None:
        self._name, self._run_once, self._every = name, run_once, every

    async def start(self) -> None:
        """Begin."""
        self.running = asyncio.create_task(loop_forever(self._name, self._run_once, self._every))

    async def stop(self) -> None:
        """End; a step under way is cut short, as by a crash."""
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
