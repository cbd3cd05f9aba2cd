"""Which secrets each running process holds: its own, by value, and nobody else's (E1)."""

from urllib.parse import urlsplit

import psutil
import pytest

from placet.contracts.catalogue import SERVICES
from placet.local.run import DATABASES
from placet.local.system import System

each_service = pytest.mark.parametrize("service", SERVICES)


def held(placet: System, service: str) -> dict[str, str]:
    """The environment that the running process really has."""
    return psutil.Process(placet.services[service].pid).environ()


def password(url: str) -> str:
    found = urlsplit(url).password
    assert found
    return found


def secrets_of(placet: System, service: str) -> set[str]:
    """The secrets that belong to a service: its broker password, its database password, its own keys."""
    own = {password(placet.amqp_url(service))}
    if service in DATABASES:
        own.add(password(placet.database_url(service)))
    if service in ("ingress", "admission"):
        own.add(placet.environment(service)["PLACET_MANDATE_KEY"])
    if service == "executor":
        own.add(placet.environment("executor")["PLACET_CRM_TOKEN"])
    return own


def owners_passwords(placet: System) -> set[str]:
    return {password(placet.database_url(service, owner=True)) for service in DATABASES}


@pytest.mark.req("E1", "M3")
@each_service
async def test_b34_a_service_holds_its_own_secrets_and_no_other(placet: System, service: str) -> None:
    text = "\n".join(held(placet, service).values())
    own = secrets_of(placet, service)
    foreign = set[str]().union(*(secrets_of(placet, other) for other in SERVICES)) | owners_passwords(placet)
    assert {secret for secret in own if secret in text} == own
    assert {secret for secret in foreign - own if secret in text} == set()


@pytest.mark.req("E1")
@each_service
async def test_only_the_executor_is_told_about_a_connector(placet: System, service: str) -> None:
    told = {name for name in held(placet, service) if name.startswith("PLACET_CRM")}
    assert bool(told) == (service == "executor")
    assert (placet.provider_url in held(placet, service).values()) == (service == "executor")


@pytest.mark.req("E1")
async def test_the_executor_is_told_about_no_database(placet: System) -> None:
    names, values = held(placet, "executor").keys(), held(placet, "executor").values()
    assert not [name for name in names if "DATABASE" in name or "OWNER" in name or name.startswith("PG")]
    assert not [value for value in values if value.startswith(("postgres", "redis"))]


@pytest.mark.req("E1")
@each_service
async def test_no_service_holds_an_administrators_login(placet: System, service: str) -> None:
    values = held(placet, service).values()
    assert placet.backing.postgres_url not in values
    assert not [value for value in values if value.startswith(placet.backing.amqp_url)]


@pytest.mark.req("E1")
@each_service
async def test_no_secret_stands_on_a_command_line(placet: System, service: str) -> None:
    """Everybody on a machine can list command lines."""
    line = " ".join(psutil.Process(placet.services[service].pid).cmdline())
    assert not [secret for secret in secrets_of(placet, service) if secret in line]
