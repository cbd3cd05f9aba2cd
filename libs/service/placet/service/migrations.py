"""Migrations: numbered SQL files, each applied once in its own transaction by the owner of the schema.

The ledger keeps each file's SHA-256, so that a file changed after it ran is noticed instead of ignored.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

import asyncpg

_LEDGER = """
create table if not exists migration (
    name text primary key, sha256 text not null, applied_at timestamptz not null default clock_timestamp())
"""


class MigrationChanged(Exception):
    """A migration that has been applied is not the file that is here now."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its name, which orders it, and its SQL."""

    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The hash that the ledger keeps."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations(*packages: str) -> list[Migration]:
    """The migrations of the packages, package by package, each in the order of its names."""
    return [
        Migration(f"{package.rpartition('.')[2]}/{file.name}", file.read_text("utf-8"))
        for package in packages
        for file in sorted(_sql_files(package), key=lambda file: file.name)
    ]


def _sql_files(package: str) -> list[Traversable]:
    return [file for file in (files(package) / "migrations").iterdir() if file.name.endswith(".sql")]


async def migrate(owner_url: str, service_role: str, migrations: list[Migration]) -> list[str]:
    """Apply what is missing and let the service's role read and write rows, without any DDL. Returns the names applied.

    Raises MigrationChanged when an applied file has changed; nothing is applied then.
    """
    connection = await asyncpg.connect(owner_url, timeout=10)
    try:
        await connection.execute("select pg_advisory_lock(hashtext('placet.migrations'))")
        applied = await _apply(connection, migrations)
        await connection.execute(
            f'grant usage on schema public to "{service_role}";'
            f'grant select, insert, update, delete on all tables in schema public to "{service_role}";'
            f'revoke all on migration from "{service_role}"'
        )
        return applied
    finally:
        await connection.close()


async def pending(url: str, migrations: list[Migration]) -> list[str]:
    """The names of the migrations that a database lacks, as its owner sees it; nothing is changed."""
    connection = await asyncpg.connect(url, timeout=10)
    try:
        known = await _known(connection)
        return [migration.name for migration in migrations if migration.name not in known]
    finally:
        await connection.close()


async def _known(connection: asyncpg.Connection) -> dict[str, str]:
    if await connection.fetchval("select to_regclass('migration')") is None:
        return {}
    return {row["name"]: row["sha256"] for row in await connection.fetch("select name, sha256 from migration")}


async def _apply(connection: asyncpg.Connection, migrations: list[Migration]) -> list[str]:
    await connection.execute(_LEDGER)
    known = await _known(connection)
    for migration in migrations:
        if known.get(migration.name, migration.sha256) != migration.sha256:
            raise MigrationChanged(f"{migration.name} was changed after it had been applied")
    missing = [migration for migration in migrations if migration.name not in known]
    for migration in missing:
        async with connection.transaction():
            await connection.execute(migration.sql)
            await connection.execute("insert into migration values ($1, $2)", migration.name, migration.sha256)
    return [migration.name for migration in missing]
