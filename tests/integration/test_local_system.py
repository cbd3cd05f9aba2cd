"""A run leaves nothing behind, however it ends."""

import asyncio
import json
import os
import sys

import asyncpg
import psutil
import pytest

from placet.local.backing import Backing
from placet.local.broker_admin import ManagementApi
from placet.local.system import system
from placet.testing import wait_until

LAUNCHER = """
import asyncio, json, sys
from placet.local.backing import Backing
from placet.local.broker_admin import administrator_of
from placet.local.system import system

async def main(amqp, postgres, redis):
    async with system(Backing(amqp, postgres, redis, administrator_of(amqp))) as made:
        pids = [process.pid for process in (*made.services.values(), made.provider)]
        print(json.dumps({"pids": pids, "run": made.run.name, "folder": str(made.folder)}), flush=True)
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.req("U5")
async def test_a_launcher_that_is_killed_leaves_no_process_and_the_next_run_removes_its_databases(backing: Backing) -> None:
    broker = backing.broker
    how = {"PLACET_RABBITMQ_MANAGEMENT_URL": broker.url} if isinstance(broker, ManagementApi) else {}
    launcher = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LAUNCHER, backing.amqp_url, backing.postgres_url, backing.redis_url,
        stdout=asyncio.subprocess.PIPE, env=os.environ | how,
    )  # fmt: skip
    assert launcher.stdout
    left = json.loads(await launcher.stdout.readline())
    assert all(psutil.pid_exists(pid) for pid in left["pids"])
    assert await _databases(backing, left["run"])  # asked before the kill: after it, any run beside us may remove them
    launcher.kill()
    await launcher.wait()

    async def gone() -> bool:
        return not any(psutil.pid_exists(pid) for pid in left["pids"])

    await wait_until(gone, "the services and the provider of a killed launcher have ended")

    async def removed() -> bool:
        return await _databases(backing, left["run"]) == []

    async with system(backing, start=False):
        await wait_until(removed, "the databases of the killed run are gone")


async def _databases(backing: Backing, run: str) -> list[str]:
    admin = await asyncpg.connect(backing.postgres_url)
    try:
        rows = await admin.fetch("select datname from pg_database where datname like $1", f"{run}%")
        return [row["datname"] for row in rows]
    finally:
        await admin.close()
