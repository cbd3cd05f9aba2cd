"""The databases of a run: one per service, with a role that owns the schema and one, without DDL, that the service uses."""

import asyncio

import asyncpg

from placet.local.addresses import database_url, is_of_this_machine
from placet.local.run import DATABASES, Run, is_orphan
from placet.service.migrations import load_migrations, migrate


async def create_databases(admin_url: str, run: Run) -> None:
    """Make the roles and databases of the run and bring them up to date."""
    admin = await asyncpg.connect(admin_url)
    try:
        for service in DATABASES:
            await _create(admin, run, service)
    finally:
        await admin.close()
    await asyncio.gather(*(_migrate(admin_url, run, service) for service in DATABASES))


async def _create(admin: asyncpg.Connection, run: Run, service: str) -> None:
    database, owner = run.database(service), run.owner(service)
    for role in (database, owner):
        await admin.execute(f"""create role "{role}" login password '{run.password(role)}'""")
    await admin.execute(f'create database "{database}" owner "{owner}"')
    await admin.execute(f'revoke all on database "{database}" from public')
    await admin.execute(f'grant connect on database "{database}" to "{database}"')


async def _migrate(admin_url: str, run: Run, service: str) -> None:
    migrations = load_migrations("placet.messaging", f"placet.{service}")
    owner = login_url(admin_url, run, run.owner(service), service)
    await migrate(owner, run.database(service), migrations)


def login_url(admin_url: str, run: Run, role: str, service: str) -> str:
    """The URL by which a role of the run reaches the database of a service."""
    return database_url(admin_url, run.database(service), role, run.password(role))


async def drop_databases(admin_url: str, run: Run) -> None:
    """Remove the databases and roles of the run."""
    admin = await asyncpg.connect(admin_url)
    try:
        for service in DATABASES:
            await admin.execute(f'drop database if exists "{run.database(service)}" with (force)')
            for role in (run.database(service), run.owner(service)):
                await admin.execute(f'drop role if exists "{role}"')
    finally:
        await admin.close()


async def orphaned_runs(admin_url: str) -> list[str]:
    """The runs on this server whose process is gone. Only a server of this machine is asked: pids mean nothing elsewhere."""
    if not is_of_this_machine(admin_url):
        return []
    admin = await asyncpg.connect(admin_url)
    try:
        rows = await admin.fetch(_RUNS)
    finally:
        await admin.close()
    return sorted(row["run"] for row in rows if is_orphan(row["run"]))


_RUNS = r"""
select distinct substring(name from '^placet_\d+_[0-9a-f]{8}') as run
  from (select datname from pg_database union select rolname from pg_roles) named(name)
 where name ~ '^placet_\d+_[0-9a-f]{8}_'
"""
"""The names of the runs that have a database or a role: of one that was killed half-way there may be only roles."""
