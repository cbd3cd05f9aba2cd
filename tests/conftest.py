"""What every test may use: the backing services of the run, and the whole system on them, started once."""

from collections.abc import AsyncGenerator, Callable, Generator

import aio_pika
import pytest

from placet.local.backing import Backing
from placet.local.backing import backing as find_backing
from placet.local.system import System
from placet.local.system import system as run_system
from world import World


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes lines that the end of the run prints, whichever worker has measured them."""
    return lambda line: request.node.user_properties.append(("figures", line))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests have taken."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        lines = [str(value) for name, value in report.user_properties if name == "figures"]
        if lines:
            terminalreporter.section(f"figures of {report.nodeid}")
            terminalreporter.line("\n".join(lines))


@pytest.fixture(scope="session", autouse=True)
def every_broker_connection_is_closed() -> Generator[None]:
    """One that came up, and that nobody has closed, fails the test in which it is collected.

    aio-pika itself closes what is collected, in whichever thread that happens, and minds only where no loop runs.
    """

    def mind(connection: aio_pika.Connection) -> None:
        if connection.transport and not (connection.is_closed or connection.loop.is_closed()):
            raise ResourceWarning(f"never closed: {connection!r}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aio_pika.Connection, "__del__", mind)
        yield


@pytest.fixture(scope="session")
def backing() -> Generator[Backing]:
    """RabbitMQ, PostgreSQL and Redis, found or started."""
    with find_backing() as found:
        yield found


@pytest.fixture(scope="session")
async def placet(backing: Backing) -> AsyncGenerator[System]:
    """Five services and the provider, shared by every test that does not break them."""
    async with run_system(backing) as running:
        yield running


@pytest.fixture
async def world(placet: System) -> AsyncGenerator[World]:
    """The people of the shared fixture, in tenants that no other test has."""
    async with World(placet) as made:
        yield made
    await placet.mend()
