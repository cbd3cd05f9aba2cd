"""A run leaves nothing behind, however it ends."""

import asyncio
import json
import os
import secrets
import sys
from dataclasses import replace

import asyncpg
import psutil
import pytest

from placet.contracts.catalogue import OUTSIDE, SERVICES
from placet.local import logins
from placet.local.addresses import credentials, vhost_url
from placet.local.backing import Backing
from placet.local.broker_admin import BrokerAdmin, Definitions, ManagementApi
from placet.local.errors import BackingError, NotThisWay
from placet.local.run import DATABASES, Run
from placet.local.system import System, system
from placet.testing import wait_until

pytestmark = pytest.mark.req("U5")

LAUNCHER = """
import asyncio, json, sys
from placet.contracts.catalogue import OUTSIDE, SERVICES
from placet.local.backing import Backing
from placet.local.broker_admin import administrator_of
from placet.local.system import system

async def main(amqp, postgres, redis):
    async with system(Backing(amqp, postgres, redis, administrator_of(amqp))) as made:
        pids = [process.pid for process in (*made.services.values(), made.provider)]
        users = {name: made.amqp_url(name) for name in (*SERVICES, *OUTSIDE)}
        print(json.dumps({"pids": pids, "run": made.run.name, "users": users}), flush=True)
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_run_that_ends_leaves_no_vhost_user_database_or_role(backing: Backing) -> None:
    async with system(backing, start=False) as made:
        name, users = made.run.name, users_of(made)
        assert await remains(backing, name, users) == all_of(name)
    assert await remains(backing, name, users) == set()


class Refusing:
    """A broker that takes no definitions."""

    def __init__(self, broker: BrokerAdmin) -> None:
        self.delete, self.unacknowledged = broker.delete, broker.unacknowledged
        self.run = ""

    def import_definitions(self, definitions: Definitions) -> None:
        self.run = definitions["vhosts"][0]["name"]
        raise BackingError("no")


async def test_a_run_that_cannot_begin_leaves_no_database_or_role(backing: Backing) -> None:
    refusing = Refusing(backing.broker)
    with pytest.raises(BackingError):
        async with system(replace(backing, broker=refusing), start=False):
            pass
    assert refusing.run
    assert await in_postgres(backing, refusing.run) == set()


async def test_a_launcher_that_is_killed_leaves_no_process_and_the_next_run_removes_the_rest(backing: Backing) -> None:
    broker = backing.broker
    how = {"PLACET_RABBITMQ_MANAGEMENT_URL": broker.url} if isinstance(broker, ManagementApi) else {}
    launcher = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LAUNCHER, backing.amqp_url, backing.postgres_url, backing.redis_url,
        stdout=asyncio.subprocess.PIPE, env=os.environ | how,
    )  # fmt: skip
    assert launcher.stdout
    left = json.loads(await launcher.stdout.readline())
    assert all(psutil.pid_exists(pid) for pid in left["pids"])
    # Looked for before the kill: after it, any run beside us may remove them.
    assert await remains(backing, left["run"], left["users"]) == all_of(left["run"])
    launcher.kill()
    await launcher.wait()

    async def ended() -> bool:
        return not any(psutil.pid_exists(pid) for pid in left["pids"])

    await wait_until(ended, "the services and the provider of a killed launcher have ended")

    async def removed() -> bool:
        return not await remains(backing, left["run"], left["users"])

    async with system(backing, start=False):
        await wait_until(removed, "vhost, users, databases and roles of the killed run are gone")


async def test_a_run_that_was_killed_before_it_had_more_than_a_role_is_removed_too(backing: Backing) -> None:
    begun = Run(f"placet_{await ended_pid()}_{secrets.token_hex(4)}")
    admin = await asyncpg.connect(backing.postgres_url)
    try:
        await admin.execute(f'create role "{begun.database("ingress")}"')
    finally:
        await admin.close()

    async def removed() -> bool:
        return not await in_postgres(backing, begun.name)

    async with system(backing, start=False):
        await wait_until(removed, "the role of the run that hardly began is gone")


def users_of(made: System) -> dict[str, str]:
    """The logins of all broker users of a run."""
    return {name: made.amqp_url(name) for name in (*SERVICES, *OUTSIDE)}


def all_of(name: str) -> set[str]:
    """Everything that a run makes."""
    run = Run(name)
    databases = {f"database {run.database(service)}" for service in DATABASES}
    roles = {f"role {role(service)}" for service in DATABASES for role in (run.database, run.owner)}
    return {"vhost", *(f"user {name}" for name in (*SERVICES, *OUTSIDE)), *databases, *roles}


async def remains(backing: Backing, run: str, users: dict[str, str]) -> set[str]:
    """What is there of a run."""
    vhost = vhost_url(backing.amqp_url, run, *credentials(backing.amqp_url))
    refusals = {name: await refusal(url) for name, url in users.items()}
    # Whose vhost is gone is told so; who is gone himself is not let in at all.
    there = {f"user {name}" for name, reason in refusals.items() if "ACCESS_REFUSED" not in reason}
    if await refusal(vhost) == "":
        there.add("vhost")
    return there | await in_postgres(backing, run)


async def refusal(url: str) -> str:
    """Why a broker refuses a login; empty when it does not."""
    try:
        await asyncio.to_thread(logins.log_in_to_rabbitmq, url)
    except NotThisWay as reason:
        return str(reason)
    return ""


async def in_postgres(backing: Backing, run: str) -> set[str]:
    """The databases and roles of a run."""
    admin = await asyncpg.connect(backing.postgres_url)
    try:
        rows = await admin.fetch(
            "select 'database ' || datname as what from pg_database where starts_with(datname, $1)"
            " union select 'role ' || rolname from pg_roles where starts_with(rolname, $1)",
            run,
        )
        return {str(row["what"]) for row in rows}
    finally:
        await admin.close()


async def ended_pid() -> int:
    """The number of a process that is gone."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()
    return process.pid
