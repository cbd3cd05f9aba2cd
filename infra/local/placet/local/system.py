"""The whole system as processes on this machine: five services, each with its own logins, and the demonstration provider."""

import asyncio
import secrets
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg

from placet.contracts.catalogue import SERVICES
from placet.contracts.topology import definitions
from placet.local.addresses import credentials, vhost_url
from placet.local.backing import Backing
from placet.local.databases import create_databases, drop_databases, login_url, orphaned_runs
from placet.local.errors import BackingError
from placet.local.issuer import ISSUER, Issuer
from placet.local.private.scratch import Scratch
from placet.local.processes import Process, service_command
from placet.local.run import DATABASES, Run

TESTS = Path(__file__).resolve().parents[4] / "tests"
"""The checkout's tests: the doubles of the outside world live there."""

PROVIDER = TESTS / "fakes" / "crm_provider"


class System:
    """Starts, kills and restarts services. Make one with `system()`."""

    def __init__(self, backing: Backing, run: Run, scratch: Scratch, settings: Mapping[str, Mapping[str, str]]) -> None:
        self.backing, self.run, self.folder = backing, run, scratch.directory
        self._scratch = scratch
        self.issuer = Issuer()
        self.services: dict[str, Process] = {}
        self._extra = settings
        self._jwks = self.issuer.write_jwks(self.folder / "jwks.json")
        self._crm_token = secrets.token_hex(16)
        self._mandate_key = secrets.token_hex(16)
        self._provider: Process | None = None
        self._http_port: int = 0
        self.url: str = ""
        self.provider_url: str = ""

    async def start_provider(self) -> None:
        """Start the demonstration CRM."""
        command = [sys.executable, str(PROVIDER), "--port", "0", "--token", self._crm_token]
        self._provider = self._process("provider", command, {})
        self.provider_url = (await self._provider.said("listening"))["listening"]

    def _process(self, name: str, command: list[str], environment: dict[str, str]) -> Process:
        """A process that ends with us, even if we are killed."""
        self._scratch.release_ended()
        process = Process(name, command, environment, self.folder / f"{name}.log")
        self._scratch.adopt(process.popen)
        return process

    def amqp_url(self, user: str) -> str:
        """The login of one of the run's broker users (its name without the prefix)."""
        name = self.run.user_prefix + user
        return vhost_url(self.backing.amqp_url, self.run.vhost, name, self.run.password(name))

    def database_url(self, service: str, *, owner: bool = False) -> str:
        """The login of a service's role, or of the owner of its schema."""
        role = self.run.owner(service) if owner else self.run.database(service)
        return login_url(self.backing.postgres_url, self.run, role, service)

    def environment(self, service: str) -> dict[str, str]:
        """What a service is told: its own logins, and nobody else's."""
        settings = {"PLACET_AMQP_URL": self.amqp_url(service), "PLACET_AMQP_USER_PREFIX": self.run.user_prefix}
        if service in DATABASES:
            settings["PLACET_DATABASE_URL"] = self.database_url(service)
        if service in ("ingress", "permission"):
            settings |= {"PLACET_AUTH_ISSUER": ISSUER, "PLACET_AUTH_JWKS": str(self._jwks)}
        if service == "ingress":
            settings |= {
                "PLACET_REDIS_URL": self.backing.redis_url,
                "PLACET_REDIS_PREFIX": self.run.name,
                "PLACET_HTTP_PORT": str(self._http_port),
            }
        if service in ("ingress", "admission"):
            settings["PLACET_MANDATE_KEY"] = self._mandate_key
        if service == "executor":
            settings |= {"PLACET_CRM_URL": self.provider_url, "PLACET_CRM_TOKEN": self._crm_token}
        return settings | dict(self._extra.get("*", {})) | dict(self._extra.get(service, {}))

    async def start(self, *names: str, **more: str) -> None:
        """Start services (all, when none is named) with more settings, and wait until each is ready."""
        for name in names or SERVICES:
            self.services[name] = self._process(name, service_command(name), self.environment(name) | more)
        await asyncio.gather(*(self.services[name].said("service.started") for name in names or SERVICES))
        if not names or "ingress" in names:
            self.url = (await self.services["ingress"].said("http.listening"))["url"]
            self._http_port = int(self.url.rpartition(":")[2])

    async def start_copy(self, service: str, name: str, **more: str) -> None:
        """Start one more instance of a service, under a name of its own, and wait until it is ready."""
        self.services[name] = self._process(name, service_command(service), self.environment(service) | more)
        await self.services[name].said("service.started")

    async def mend(self) -> None:
        """Start again every service that has ended."""
        ended = [name for name in SERVICES if self.services[name].returncode is not None]
        if ended:
            await self.start(*ended)

    @property
    def admin_amqp_url(self) -> str:
        """The administrator's login, in the run's vhost."""
        return vhost_url(self.backing.amqp_url, self.run.vhost, *credentials(self.backing.amqp_url))

    def kill(self, *names: str) -> None:
        """SIGKILL services (all, when none is named)."""
        for name in names or SERVICES:
            self.services[name].kill()

    @property
    def provider(self) -> Process:
        """The demonstration CRM's process."""
        assert self._provider, "the provider has not been started"
        return self._provider

    def end(self) -> None:
        """SIGKILL everything that still runs."""
        for process in (*self.services.values(), self._provider):
            if process and process.returncode is None:
                process.kill()

    async def stop(self, *names: str) -> None:
        """Let services end by themselves, all at once (all, when none is named)."""
        await asyncio.gather(*(self.services[name].terminate() for name in names or SERVICES if name in self.services))

    def token(self, subject: str, tenant: str, *scopes: str) -> str:
        """An access token of the run's issuer."""
        return self.issuer.token(subject, tenant, scopes)


@asynccontextmanager
async def system(
    backing: Backing, settings: Mapping[str, Mapping[str, str]] | None = None, *, start: bool = True
) -> AsyncGenerator[System]:
    """The whole system for the block, in a vhost, databases and names of its own, which end with it.

    `settings` are more settings by service; `*` stands for every service. With `start=False` nothing but the provider runs.
    """
    run = Run()
    with Scratch() as scratch:
        made = System(backing, run, scratch, settings or {})
        try:
            await _prepare(backing, run)
            await made.start_provider()
            if start:
                await made.start()
            yield made
        finally:
            await _remove(made)


async def _prepare(backing: Backing, run: Run) -> None:
    for name in await orphaned_runs(backing.postgres_url):
        with suppress(asyncpg.PostgresError, BackingError):  # another run beside us may be removing it just now
            await _forget(backing, Run(name))
    topology = definitions(vhost=run.vhost, user_prefix=run.user_prefix, password_of=run.password)
    name, _ = credentials(backing.amqp_url)
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    topology["permissions"].append({"user": name, "vhost": run.vhost} | everything)
    # One after the other: when one fails, nothing is still being made while all of it is removed. A run that is killed is
    # found by its roles and databases, so they are made first and removed last.
    await create_databases(backing.postgres_url, run)
    await asyncio.to_thread(backing.broker.import_definitions, topology)


async def _remove(made: System) -> None:
    made.end()
    await _forget(made.backing, made.run)


async def _forget(backing: Backing, run: Run) -> None:
    try:
        await asyncio.to_thread(backing.broker.delete, [run.vhost], run.users)
    finally:
        await drop_databases(backing.postgres_url, run)
