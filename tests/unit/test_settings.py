"""Settings: read once from the environment; what is missing or wrong stops the service by name, with status 78."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from placet.admission.settings import Settings as AdmissionSettings
from placet.executor.settings import Settings as ExecutorSettings
from placet.ingress.settings import Settings as IngressSettings
from placet.permission.settings import Settings as PermissionSettings
from placet.planner.settings import Settings as PlannerSettings
from placet.service.server import Server
from placet.service.settings import EX_CONFIG, MigrationSettings, ServiceSettings, load_settings

WHOLE = {
    "PLACET_DATABASE_URL": "postgresql://role:word@database/name",
    "PLACET_AUTH_ISSUER": "https://issuer.example",
    "PLACET_AUTH_JWKS": "jwks.json",
    "PLACET_REDIS_URL": "redis://redis/0",
    "PLACET_CRM_URL": "http://crm.example",
    "PLACET_CRM_TOKEN": "CANARY",
    "PLACET_MANDATE_KEY": "a key of at least sixteen",
    "PLACET_OWNER_URL": "postgresql://owner:word@database/name",
    "PLACET_SERVICE_ROLE": "placet_planner",
}
SERVICES: list[type[ServiceSettings]] = [
    AdmissionSettings,
    ExecutorSettings,
    IngressSettings,
    PermissionSettings,
    PlannerSettings,
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PLACET_")]:
        monkeypatch.delenv(name)
    for name, value in WHOLE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PLACET_AMQP_URL", login("planner"))


def login(user: str) -> str:
    return f"amqp://{user}:word@broker/vhost"


def refusal(kind: type[BaseSettings], capsys: pytest.CaptureFixture[str]) -> str:
    """What is said when the settings are refused."""
    with pytest.raises(SystemExit) as caught:
        load_settings(kind)
    assert caught.value.code == EX_CONFIG == 78
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


each_service = pytest.mark.parametrize("kind", SERVICES, ids=lambda kind: kind.service)


@each_service
def test_whole_settings_are_read(kind: type[ServiceSettings], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACET_AMQP_URL", login(kind.service))
    assert load_settings(kind)


def test_whole_settings_of_a_migration_are_read() -> None:
    assert load_settings(MigrationSettings)


@each_service
@pytest.mark.parametrize(
    ("user", "prefix", "good"),
    [("{}", "", True), ("run_1.{}", "run_1.", True), ("run_1.{}", "", False), ("{}", "run_1.", False), ("guest", "", False)],
)
def test_a_service_logs_in_as_itself(
    kind: type[ServiceSettings],
    user: str,
    prefix: str,
    good: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PLACET_AMQP_URL", login(user.format(kind.service)))
    monkeypatch.setenv("PLACET_AMQP_USER_PREFIX", prefix)
    if good:
        assert load_settings(kind)
    else:
        assert refusal(kind, capsys).startswith("setting PLACET_AMQP_USER_PREFIX: ")


@pytest.mark.parametrize(
    ("url", "good"),
    [("amqp://pl%61nner:word@broker/vhost", True), ("amqps://broker/vhost", False), ("amqp://planner:word@[/vhost", False)],
)
def test_a_login_is_read_as_the_url_that_it_is(
    url: str, good: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLACET_AMQP_URL", url)
    if good:
        assert load_settings(PlannerSettings)
    else:
        assert refusal(PlannerSettings, capsys).startswith("setting PLACET_AMQP_U")


@each_service
def test_each_missing_setting_is_named(
    kind: type[ServiceSettings], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    required = [f"PLACET_{name}".upper() for name, field in kind.model_fields.items() if field.is_required()]
    assert "PLACET_AMQP_URL" in required
    for name in required:
        monkeypatch.delenv(name)
    said = refusal(kind, capsys)
    assert [line.split(":")[0] for line in said.splitlines()] == [f"setting {name}" for name in required]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (PlannerSettings, "PLACET_AMQP_URL", "http://broker"),
        (PlannerSettings, "PLACET_AMQP_URL", ""),
        (PlannerSettings, "PLACET_DATABASE_URL", "mysql://database"),
        (PlannerSettings, "PLACET_PREFETCH", "0"),
        (PlannerSettings, "PLACET_PREFETCH", "many"),
        (PlannerSettings, "PLACET_LOG_LEVEL", "loud"),
        (PlannerSettings, "PLACET_HEALTH_PORT", "65536"),
        (PlannerSettings, "PLACET_MODEL_ATTEMPTS", "0"),
        (AdmissionSettings, "PLACET_LEASE_SECONDS", "0"),
        (AdmissionSettings, "PLACET_ASK_SECONDS", "30"),
        (ExecutorSettings, "PLACET_CRM_TOKEN", ""),
        (ExecutorSettings, "PLACET_CRM_TOKEN", "CANARY\n"),
        (ExecutorSettings, "PLACET_CRM_TOKEN", "CANÁRY"),
        (ExecutorSettings, "PLACET_DISPATCH_SHARE", "1"),
        (ExecutorSettings, "PLACET_PROVIDER_SECONDS", "12"),
        (ExecutorSettings, "PLACET_PROVIDER_SECONDS", "inf"),
        (ExecutorSettings, "PLACET_ASK_SECONDS", "18"),
        (IngressSettings, "PLACET_ANSWER_SECONDS", "inf"),
        (IngressSettings, "PLACET_AUDIENCE", ""),
        (IngressSettings, "PLACET_REDIS_PREFIX", ""),
        (IngressSettings, "PLACET_MAX_BODY", "65537"),
        (PermissionSettings, "PLACET_DECISION_AUDIENCE", ""),
        (PermissionSettings, "PLACET_AUTH_ISSUER", ""),
        (MigrationSettings, "PLACET_SERVICE_ROLE", 'x"; drop table approval; --'),
    ],
)
def test_a_wrong_setting_is_named(
    kind: type[BaseSettings], name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if issubclass(kind, ServiceSettings):
        monkeypatch.setenv("PLACET_AMQP_URL", login(kind.service))
    monkeypatch.setenv(name, value)
    said = refusal(kind, capsys)
    assert said.startswith(f"setting {name}: ")
    assert len(said.splitlines()) == 1
    assert "CAN" not in said


@pytest.mark.parametrize(("kind", "other"), [(AdmissionSettings, "ASK"), (ExecutorSettings, "PROVIDER")])
def test_a_lease_into_which_nothing_fits_is_refused(
    kind: type[ServiceSettings], other: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLACET_AMQP_URL", login(kind.service))
    monkeypatch.setenv("PLACET_LEASE_SECONDS", "5")
    said = refusal(kind, capsys)
    assert said.startswith(f"setting PLACET_{other}_SECONDS: ")
    assert "PLACET_LEASE_SECONDS" in said


@pytest.mark.req("E1", "O3")
@pytest.mark.parametrize("name", ["PLACET_AMQP_URL", "PLACET_DATABASE_URL", "PLACET_CRM_URL"])
def test_a_wrong_setting_is_not_repeated_for_it_may_hold_a_password(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "wrong://user:CANARY@host")
    kind = ExecutorSettings if name == "PLACET_CRM_URL" else PlannerSettings
    assert "CANARY" not in refusal(kind, capsys)


@pytest.mark.req("E1", "O3")
def test_the_connectors_credential_is_in_no_representation_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACET_AMQP_URL", login("executor"))
    settings = load_settings(ExecutorSettings)
    assert settings.crm_token.get_secret_value() == "CANARY"
    assert "CANARY" not in f"{settings!r} {settings} {settings.model_dump_json()}"


FILES = [(PermissionSettings, "PLACET_POLICY_FILE"), (PlannerSettings, "PLACET_SCRIPT_FILE")]


@pytest.mark.req("P11", "O3")
@pytest.mark.parametrize(("kind", "name"), FILES, ids=["permission", "planner"])
@pytest.mark.parametrize(
    "content", [None, "CANARY: [", "- CANARY", "\t", b"\xff"], ids=["gone", "cut", "odd", "tab", "bytes"]
)
def test_a_file_that_cannot_be_read_is_named_in_one_line_without_its_content(
    kind: type[ServiceSettings],
    name: str,
    content: str | bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file.yaml"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setenv("PLACET_AMQP_URL", login(kind.service))
    monkeypatch.setenv(name, str(file))
    said = refusal(kind, capsys)
    assert said.startswith(f"setting {name}: {file}: ")
    assert len(said.splitlines()) == 1
    assert "CANARY" not in said


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.req("P5", "P11")
def test_b13_a_policy_that_cannot_be_in_force_stops_the_service_at_start(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        json.dumps({"name": "x", "rules": [{"id": "x", "effect": "ask", "actions": ["crm.note.delte"], "approver": {}}]})
    )
    for verb in ("serve", "check"):
        ended = run("placet.permission", verb, PLACET_POLICY_FILE=str(policy), PLACET_AMQP_URL=login("permission"))
        assert ended.returncode == EX_CONFIG
        assert "PLACET_POLICY_FILE" in ended.stderr
        assert "crm.note.delte" in ended.stderr


def test_a_service_says_whether_its_settings_are_whole() -> None:
    whole = run("placet.planner", "check")
    wrong = run("placet.planner", "check", PLACET_PREFETCH="0")
    assert (whole.returncode, whole.stderr) == (0, "")
    assert (wrong.returncode, wrong.stdout) == (EX_CONFIG, "")
    assert "PLACET_PREFETCH" in wrong.stderr


@pytest.mark.parametrize(
    ("host", "wrong"),
    [("127.0.0.1", "PORT"), ("192.0.2.1", "HOST"), ("no.host.invalid", "HOST")],
    ids=["taken", "far", "none"],
)
def test_an_address_at_which_nobody_can_listen_is_named(host: str, wrong: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = run("placet.planner", "serve", PLACET_HEALTH_HOST=host, PLACET_HEALTH_PORT=port)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"setting PLACET_HEALTH_{wrong}: ")
    assert len(ended.stderr.splitlines()) == 1


async def test_the_address_of_the_api_has_settings_of_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = Server(None, *taken.getsockname())
        with pytest.raises(OSError, match="in use"):
            await server.start()
    assert server.setting == "PLACET_HTTP_PORT"
