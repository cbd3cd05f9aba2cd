"""The databases of a run: one per service, with a role that owns the schema and one, without DDL, that the service uses."""

import asyncio
from urllib.parse import urlsplit, urlunsplit

import asyncpg

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
    parts = urlsplit(admin_url)
    return urlunsplit(
        (
            parts.scheme,
            f"{role}:{run.password(role)}@{parts.hostname}:{parts.port or 5432}",
            f"/{run.database(service)}",
            "",
            "",
        )
    )


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
    if urlsplit(admin_url).hostname not in ("127.0.0.1", "localhost", "::1"):
        return []
    admin = await asyncpg.connect(admin_url)
    try:
        rows = await admin.fetch("select datname from pg_database where datname like 'placet\\_%'")
    finally:
        await admin.close()
    return sorted({name for row in rows if is_orphan(name := row["datname"].rpartition("_")[0])})
