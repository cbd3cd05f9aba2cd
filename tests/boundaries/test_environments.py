"""Each service installed alone, from its own distribution: it is whole, and what it must not have is not there (E1)."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import uv

from placet.contracts.catalogue import SERVICES

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "infra" / "lock" / "dev.lock"

MODEL_CODE = ["placet.planner", "placet.planner.model", "openai", "anthropic", "pydantic_ai", "google.genai", "mistralai"]
CONNECTOR_CODE = ["placet.executor", "placet.executor.connectors", "placet.executor.connectors.crm", "httpx2"]
DEVELOPMENT = ["placet.testing", "placet.local", "placet.client", "pytest", "fakes", "testcontainers"]

IMPORTABLE = """
import importlib, json, sys
found = []
for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        assert name == missing.name or name.startswith(missing.name + "."), missing
    else:
        found.append(name)
print(json.dumps(found))
"""


class Environment:
    """A virtual environment that holds one service and what its distribution asks for."""

    def __init__(self, service: str, folder: Path) -> None:
        self.service = service
        self._python = folder / "bin" / "python"
        run_uv("venv", "--python", sys.executable, str(folder))
        install = ["pip", "install", "--python", str(self._python), "--no-editable", "--constraint", str(LOCK)]
        command = [*install, "--build-constraint", str(LOCK), str(ROOT / "services" / service)]
        # The cache that made our own environment often holds everything; the registry is for where it does not.
        if run_uv(*command, "--offline", check=False).returncode:
            run_uv(*command)

    @property
    def site(self) -> Path:
        """Where its packages are."""
        (found,) = self._python.parent.parent.glob("lib/python*/site-packages")
        return found

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """This environment's Python, with nothing of ours on its path or in its variables."""
        return subprocess.run(
            [str(self._python), "-I", *arguments], env={}, cwd=self.site, capture_output=True, text=True, timeout=120
        )

    def importable(self, names: list[str]) -> list[str]:
        """Those of the modules that can be imported here. Raises when one is there and breaks."""
        done = self.run("-c", IMPORTABLE, json.dumps(names))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def run_uv(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run([uv.find_uv_bin(), "-q", *arguments], env=kept, capture_output=True, text=True, timeout=150)
    assert not (check and done.returncode), done.stderr
    return done


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """The environment of a service, made when it is first asked for."""

    @cache
    def environment(service: str) -> Environment:
        return Environment(service, tmp_path_factory.mktemp(service) / "env")

    return environment


Alone = Callable[[str], Environment]
each_service = pytest.mark.parametrize("service", SERVICES)


@pytest.mark.req("E1")
@each_service
def test_b34_a_service_is_whole_by_itself_and_has_the_code_of_no_other(alone: Alone, service: str) -> None:
    own = f"placet.{service}.__main__"
    others = [f"placet.{other}" for other in SERVICES if other != service]
    unneeded = (MODEL_CODE if service != "planner" else []) + (CONNECTOR_CODE if service in ("planner", "admission") else [])
    assert alone(service).importable([own, *others, *unneeded, *DEVELOPMENT]) == [own]


@pytest.mark.req("E1")
@pytest.mark.parametrize(("service", "forbidden"), [("planner", CONNECTOR_CODE), ("executor", MODEL_CODE)])
def test_nothing_of_the_other_trade_is_installed(alone: Alone, service: str, forbidden: list[str]) -> None:
    for module in forbidden:
        assert not list(alone(service).site.glob(module.replace(".", "/") + "*")), module


@pytest.mark.req("U5")
@each_service
def test_a_distribution_brings_its_data(alone: Alone, service: str) -> None:
    for source in (ROOT / "services" / service / "placet", ROOT / "libs" / "messaging" / "placet"):
        data = [file.relative_to(source) for file in source.rglob("*") if file.suffix in (".sql", ".yaml", ".typed")]
        assert data
        assert [file for file in data if not (alone(service).site / "placet" / file).is_file()] == []


@pytest.mark.req("U5")
@each_service
def test_a_service_names_each_missing_setting_and_stops(alone: Alone, service: str) -> None:
    done = alone(service).run("-m", f"placet.{service}", "check")
    assert done.returncode == os.EX_CONFIG
    missing = {line.partition(":")[0].removeprefix("setting ") for line in done.stderr.splitlines()}
    assert missing == {"PLACET_AMQP_URL"} | EXPECTED[service]


EXPECTED = {
    "ingress": {"PLACET_DATABASE_URL", "PLACET_REDIS_URL", "PLACET_AUTH_ISSUER", "PLACET_AUTH_JWKS", "PLACET_MANDATE_KEY"},
    "planner": {"PLACET_DATABASE_URL"},
    "permission": {"PLACET_DATABASE_URL", "PLACET_AUTH_ISSUER", "PLACET_AUTH_JWKS"},
    "admission": {"PLACET_DATABASE_URL", "PLACET_MANDATE_KEY"},
    "executor": {"PLACET_CRM_URL", "PLACET_CRM_TOKEN"},
}
"""The settings without a default, beside the broker's."""
