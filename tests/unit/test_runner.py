"""The runner: what a supervisor is told of a service, from its start to its end, and by which status it ends."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import ClassVar

import httpx2
import pytest

from placet.service.runner import Part, serve
from placet.service.settings import ServiceSettings
from placet.testing import wait_until


class Settings(ServiceSettings):
    """A service that needs no more than every service."""

    service: ClassVar[str] = "planner"


class Held:
    """A part that starts and stops when it is let."""

    def __init__(self) -> None:
        self.starts, self.may_start = asyncio.Event(), asyncio.Event()
        self.stops, self.may_stop = asyncio.Event(), asyncio.Event()
        self.running: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        self.starts.set()
        await self.may_start.wait()

    async def stop(self) -> None:
        self.stops.set()
        await self.may_stop.wait()


class Service:
    """A service with one part, and its health as its supervisor sees it."""

    def __init__(self) -> None:
        self.part = Held()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        settings = Settings.model_validate({"amqp_url": "amqp://planner@broker", "health_port": self._port})
        self.ended = asyncio.create_task(serve(self._build, settings))
        """Its exit status, once there is one."""

    def _build(self, _settings: Settings) -> Sequence[Part]:
        return [self.part]

    def fail(self) -> None:
        """As a part does that cannot go on."""
        self.part.running.set_exception(ConnectionError("placet.planner.in has no consumer"))

    def end(self) -> None:
        """As a part does that finds nothing more to do."""
        self.part.running.set_result(None)

    def cancel(self) -> None:
        """As the client library does with a part that waits for it."""
        self.part.running.cancel()

    def let_go(self) -> None:
        """End, wherever it is."""
        self.part.may_start.set()
        self.part.may_stop.set()
        self.ended.cancel()

    async def health(self) -> tuple[int, int, int]:
        """What `/healthz`, `/readyz` and another path answer."""
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self._port}", trust_env=False) as client:
            healthz, readyz, other = [(await client.get(path)).status_code for path in ("/healthz", "/readyz", "/")]
        return healthz, readyz, other

    async def ready(self) -> bool:
        """Whether it says that it is ready."""
        return (await self.health())[1] == 204


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Service]:
    """A service that is served; the tests' process keeps its collector, its spans, and its signals afterwards."""
    for name in ("_settle_memory", "stop_telemetry"):
        monkeypatch.setattr(f"placet.service.runner.{name}", lambda: None)
    made = Service()
    yield made
    made.let_go()
    await asyncio.gather(made.ended, return_exceptions=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().remove_signal_handler(number)


def send(number: signal.Signals) -> Callable[[Service], None]:
    """As a supervisor does that wants it to end."""
    return lambda _: signal.raise_signal(number)


@pytest.mark.req("M5")
@pytest.mark.parametrize(
    ("end", "status"),
    [
        pytest.param(Service.fail, 1, id="failed"),
        pytest.param(Service.end, 1, id="ended"),
        pytest.param(Service.cancel, 1, id="cancelled"),
        pytest.param(send(signal.SIGTERM), 0, id="SIGTERM"),
        pytest.param(send(signal.SIGINT), 0, id="SIGINT"),
    ],
)
async def test_a_service_is_ready_between_its_start_and_its_end_only_and_ends_with_a_status(
    end: Callable[[Service], None], status: int, service: Service
) -> None:
    await service.part.starts.wait()
    assert await service.health() == (204, 503, 404), "it lives, and is not ready"
    service.part.may_start.set()
    await wait_until(service.ready, "its parts have started, and it is ready")
    assert await service.health() == (204, 204, 404)
    end(service)
    await service.part.stops.wait()
    assert await service.health() == (204, 503, 404), "it lives until its parts have stopped, and takes nothing more"
    service.part.may_stop.set()
    assert await service.ended == status
    with pytest.raises(httpx2.ConnectError):
        await service.health()


@pytest.mark.req("M5")
async def test_a_service_that_is_still_starting_ends_when_it_is_asked_to(service: Service) -> None:
    await service.part.starts.wait()
    send(signal.SIGTERM)(service)
    assert await service.ended == 0
    assert not service.part.stops.is_set(), "what has not started is not stopped"
