"""docker-compose.yml keeps the walls of the design: who holds which secret, who reaches whom, what is published (E1, U5)."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_settings import BaseSettings

from placet.admission.settings import Settings as AdmissionSettings
from placet.contracts.catalogue import SERVICES
from placet.contracts.topology import PARTIES, definitions, development_password
from placet.executor.settings import Settings as ExecutorSettings
from placet.ingress.settings import Settings as IngressSettings
from placet.local.issuer import ISSUER
from placet.local.run import DATABASES
from placet.permission.settings import Settings as PermissionSettings
from placet.planner.settings import Settings as PlannerSettings
from placet.service.settings import MigrationSettings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
ALL: dict[str, dict[str, Any]] = COMPOSE["services"]
MIGRATIONS = [f"migrate-{service}" for service in DATABASES]
OURS = [*SERVICES, *MIGRATIONS, "provider", "dev-keys", "dev-token"]

SETTINGS: Mapping[str, type[BaseSettings]] = {
    "ingress": IngressSettings,
    "planner": PlannerSettings,
    "permission": PermissionSettings,
    "admission": AdmissionSettings,
    "executor": ExecutorSettings,
} | dict.fromkeys(MIGRATIONS, MigrationSettings)

OTEL = {"OTEL_EXPORTER_OTLP_ENDPOINT"}
"""What the OpenTelemetry SDK reads by itself."""

SECRET = re.compile(r"\$\{(\w*(?:PASSWORD|TOKEN))(?::-([^}]*))?\}")
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")

each_of_ours = pytest.mark.parametrize("name", OURS)
each_service = pytest.mark.parametrize("service", SERVICES)


def environment(name: str) -> dict[str, str]:
    return ALL[name].get("environment", {})


def as_started(name: str) -> dict[str, str]:
    """The environment when no variable is set."""
    return {key: DEFAULT.sub(r"\1", value) for key, value in environment(name).items()}


def secrets(name: str) -> set[str]:
    """The variables that hold a secret, and that this container is told."""
    return {variable for variable, _ in SECRET.findall(json.dumps(ALL[name]))}


def networks(name: str) -> set[str]:
    return set(ALL[name].get("networks", []))


def waits_for(name: str) -> dict[str, str]:
    return {other: how["condition"] for other, how in ALL[name].get("depends_on", {}).items()}


@pytest.mark.req("U5")
def test_everything_is_there() -> None:
    assert {*OURS, "rabbitmq", "postgres", "redis", "otel-collector", "jaeger"} == ALL.keys()


@pytest.mark.req("U5")
@pytest.mark.parametrize("name", SETTINGS)
def test_every_variable_is_a_setting_that_the_service_reads(name: str) -> None:
    known = {f"PLACET_{field}".upper() for field in SETTINGS[name].model_fields} | OTEL
    assert environment(name).keys() - known == set()


@pytest.mark.req("U5")
@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_are_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in as_started(name).items():
        monkeypatch.setenv(variable, value)
    assert SETTINGS[name]()


@pytest.mark.req("E1", "M3")
@each_service
def test_a_service_is_told_its_own_secrets_and_no_other(service: str) -> None:
    upper = service.upper()
    own = {f"PLACET_{upper}_AMQP_PASSWORD"}
    own |= {f"PLACET_{upper}_DB_PASSWORD"} if service in DATABASES else set()
    own |= {"executor": {"PLACET_CRM_TOKEN"}, "ingress": {"PLACET_REDIS_PASSWORD"}}.get(service, set())
    assert secrets(service) == own


@pytest.mark.req("E1")
@pytest.mark.parametrize("service", DATABASES)
def test_only_the_one_shot_holds_the_owners_password(service: str) -> None:
    variable = f"PLACET_{service.upper()}_OWNER_PASSWORD"
    assert {name for name in ALL if variable in secrets(name)} == {f"migrate-{service}", "postgres"}
    assert secrets(f"migrate-{service}") == {variable}


@pytest.mark.req("E1")
def test_the_connectors_credential_is_with_the_executor_and_the_provider() -> None:
    assert {name for name in ALL if "PLACET_CRM_TOKEN" in secrets(name)} == {"executor", "provider"}


@pytest.mark.req("E1")
def test_no_secret_stands_on_a_command_line() -> None:
    for name, service in ALL.items():
        lines = [service.get(part, "") for part in ("command", "entrypoint", "healthcheck")]
        assert not SECRET.search(str(lines)), name


@pytest.mark.req("M3")
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_logs_in_as_itself_with_what_the_definitions_hold(service: str) -> None:
    login = f"amqp://{service}:{development_password(service)}@rabbitmq:5672/{definitions()['vhosts'][0]['name']}"
    assert as_started(service)["PLACET_AMQP_URL"] == login
    assert service in PARTIES


@pytest.mark.req("E1")
@pytest.mark.parametrize("service", DATABASES)
def test_a_service_and_its_one_shot_use_the_roles_that_postgres_makes(service: str) -> None:
    made = as_started("postgres")
    own, owner = made[f"PLACET_{service.upper()}_DB_PASSWORD"], made[f"PLACET_{service.upper()}_OWNER_PASSWORD"]
    where = f"@postgres:5432/placet_{service}"
    assert as_started(service)["PLACET_DATABASE_URL"] == f"postgresql://placet_{service}:{own}{where}"
    told = as_started(f"migrate-{service}")
    assert told["PLACET_OWNER_URL"] == f"postgresql://placet_{service}_owner:{owner}{where}"
    assert told["PLACET_SERVICE_ROLE"] == f"placet_{service}"
    assert own != owner


@pytest.mark.req("E1")
def test_only_the_executor_reaches_the_provider() -> None:
    assert {name for name in ALL if networks(name) & networks("provider")} == {"executor", "provider"}


@pytest.mark.req("E1")
def test_a_store_is_reached_by_those_who_own_something_in_it() -> None:
    assert {name for name in ALL if "database" in networks(name)} == {*DATABASES, *MIGRATIONS, "postgres"}
    assert {name for name in ALL if networks(name) & networks("redis")} == {"ingress", "redis"}
    assert {name for name in ALL if networks(name) & networks("rabbitmq")} == {*SERVICES, "rabbitmq"}


@pytest.mark.req("E1")
def test_the_way_out_is_open_to_ingress_and_the_viewer_alone() -> None:
    closed = {name for name, network in COMPOSE["networks"].items() if network.get("internal")}
    assert {name for name in ALL if networks(name) - closed} == {"ingress", "jaeger"}
    assert all(networks(name) or ALL[name]["network_mode"] == "none" for name in ALL)


@pytest.mark.req("E1", "U5")
def test_of_our_services_only_ingress_publishes_a_port_and_only_on_this_machine() -> None:
    published = {name: service["ports"] for name, service in ALL.items() if "ports" in service}
    assert published.keys() == {"ingress", "jaeger"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


@pytest.mark.req("E1")
@each_of_ours
def test_a_container_of_ours_can_do_little(name: str) -> None:
    container = ALL[name]
    assert container["read_only"] is True
    assert container["cap_drop"] == ["ALL"]
    assert "cap_add" not in container
    assert container["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "cpus", "pids_limit"} <= container.keys()
    assert not container.get("privileged")


@pytest.mark.req("U5")
@each_service
def test_a_service_starts_when_what_it_needs_is_ready(service: str) -> None:
    needed = {"rabbitmq": "service_healthy"}
    if service in DATABASES:
        needed[f"migrate-{service}"] = "service_completed_successfully"
    if "PLACET_AUTH_JWKS" in environment(service):
        needed["dev-keys"] = "service_completed_successfully"
    assert needed.items() <= waits_for(service).items()


@pytest.mark.req("U5")
def test_who_is_waited_for_as_healthy_says_when_it_is() -> None:
    awaited = {other for name in ALL for other, how in waits_for(name).items() if how == "service_healthy"}
    assert awaited == {"rabbitmq", "postgres", "redis", "provider"}
    assert all("healthcheck" in ALL[name] for name in awaited)


@pytest.mark.req("P6")
def test_the_private_key_is_with_the_development_issuer_alone() -> None:
    mounts = {name: service.get("volumes", []) for name, service in ALL.items()}
    assert {name for name, found in mounts.items() if "dev-key:" in str(found)} == {"dev-keys", "dev-token"}
    readers = {name for name, found in mounts.items() if "dev-jwks:/jwks:ro" in found}
    assert readers == {"ingress", "permission"}
    assert {as_started(name)["PLACET_AUTH_ISSUER"] for name in readers} == {ISSUER}


@pytest.mark.req("U5")
def test_every_file_that_is_mounted_or_built_from_exists() -> None:
    text = DEFAULT.sub(r"\1", json.dumps(ALL))
    for path in re.findall(r"(\./[\w./-]+):/", text) + re.findall(r'"dockerfile": "([^"]+)"', text):
        assert (ROOT / path).is_file(), path


@pytest.mark.req("U5")
def test_a_development_password_says_that_it_is_one() -> None:
    defaults = dict(SECRET.findall(json.dumps(ALL)))
    assert len(defaults) >= 15
    assert all(re.search(r"-dev-(password|token)$", default) for default in defaults.values()), defaults
