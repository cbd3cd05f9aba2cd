"""Migrations on a real PostgreSQL: applied once, noticed when changed, and no DDL for the role that the service uses."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import asyncpg
import pytest

from placet.local.backing import Backing
from placet.local.databases import create_databases, drop_databases, login_url
from placet.local.run import DATABASES, Run
from placet.service.migrations import Migration, MigrationChanged, load_migrations, migrate, pending

SERVICE = "planner"
"""The service whose database takes the migrations of these tests."""


class Databases:
    """The databases of a run, as `make up` makes them."""

    def __init__(self, admin_url: str, run: Run) -> None:
        self._admin_url, self._run = admin_url, run
        self.role = run.database(SERVICE)

    def owner(self, service: str = SERVICE) -> str:
        return login_url(self._admin_url, self._run, self._run.owner(service), service)

    def service(self, service: str = SERVICE) -> str:
        return login_url(self._admin_url, self._run, self._run.database(service), service)

    async def migrate(self, *migrations: Migration) -> list[str]:
        return await migrate(self.owner(), self.role, list(migrations))

    async def pending(self, *migrations: Migration) -> list[str]:
        return await pending(self.owner(), list(migrations))


@pytest.fixture(scope="module")
async def databases(backing: Backing) -> AsyncGenerator[Databases]:
    run = Run()
    try:
        await create_databases(backing.postgres_url, run)
        yield Databases(backing.postgres_url, run)
    finally:
        await drop_databases(backing.postgres_url, run)


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
def table() -> str:
    return f"made_{secrets.token_hex(4)}"


def creates(table: str) -> Migration:
    return Migration(f"{table}/0001_create.sql", f"create table {table} (n int not null)")


def fills(table: str) -> Migration:
    """A migration that would be noticed if it ran twice."""
    return Migration(f"{table}/0002_fill.sql", f"insert into {table} values (1); alter table {table} add column more int")


async def rows(databases: Databases, table: str) -> int:
    async with connected(databases.service()) as connection:
        return await connection.fetchval(f"select count(*) from {table}")


async def exists(databases: Databases, table: str) -> bool:
    async with connected(databases.owner()) as connection:
        return await connection.fetchval("select to_regclass($1) is not null", table)


async def test_each_migration_is_applied_once_in_order(databases: Databases, table: str) -> None:
    create, fill = creates(table), fills(table)
    assert await databases.migrate(create) == [create.name]
    assert await databases.migrate(create, fill) == [fill.name]
    assert await databases.migrate(create, fill) == []
    assert await rows(databases, table) == 1


async def test_two_that_migrate_at_once_apply_each_migration_once(databases: Databases, table: str) -> None:
    create, fill = creates(table), fills(table)
    applied = await asyncio.gather(*(databases.migrate(create, fill) for _ in range(4)))
    assert sorted(applied) == [[], [], [], [create.name, fill.name]]
    assert await rows(databases, table) == 1


async def test_what_is_missing_is_pending(databases: Databases, table: str) -> None:
    create, fill = creates(table), fills(table)
    assert await databases.pending(create, fill) == [create.name, fill.name]
    assert not await exists(databases, table)
    await databases.migrate(create)
    assert await databases.pending(create, fill) == [fill.name]
    await databases.migrate(create, fill)
    assert await databases.pending(create, fill) == []


async def test_an_applied_file_that_was_changed_is_refused_by_name_and_nothing_is_applied(
    databases: Databases, table: str
) -> None:
    create = creates(table)
    await databases.migrate(create)
    other = creates(f"{table}_other")
    with pytest.raises(MigrationChanged, match=create.name):
        await databases.migrate(other, replace(create, sql=create.sql + " -- and a word"))
    assert not await exists(databases, f"{table}_other")
    assert await databases.pending(create, other) == [other.name]


async def test_a_migration_that_fails_leaves_nothing_of_itself_and_can_be_mended(databases: Databases, table: str) -> None:
    create, fill = creates(table), fills(table)
    broken = replace(fill, sql=f"{fill.sql}; select 1 / 0")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await databases.migrate(create, broken, creates(f"{table}_later"))
    assert await databases.pending(create, broken) == [broken.name]
    assert not await exists(databases, f"{table}_later")
    assert await databases.migrate(create, fill) == [fill.name]
    assert await rows(databases, table) == 1


@pytest.mark.parametrize("service", DATABASES)
async def test_every_migration_that_ships_is_applied(databases: Databases, service: str) -> None:
    shipped = load_migrations("placet.messaging", f"placet.{service}")
    assert {migration.name.partition("/")[0] for migration in shipped} == {"messaging", service}
    assert await pending(databases.owner(service), shipped) == []


@pytest.mark.req("A13")
@pytest.mark.parametrize("service", DATABASES)
@pytest.mark.parametrize(
    "statement",
    [
        "create table mine (n int)",
        "create temporary table mine (n int)",
        "create schema mine",
        "create function mine() returns int language sql as 'select 1'",
        "alter table outbox add column mine int",
        "alter table outbox disable row level security",
        "create index on outbox (message_id)",
        "truncate outbox",
        "drop table outbox",
        "select * from migration",
        "delete from migration",
        "create role mine",
    ],
)
async def test_the_role_of_a_service_has_no_ddl(databases: Databases, service: str, statement: str) -> None:
    async with connected(databases.service(service)) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


@pytest.mark.req("A13")
@pytest.mark.parametrize("service", DATABASES)
async def test_the_role_of_a_service_cannot_become_another_or_pass_row_level_security(
    databases: Databases, service: str
) -> None:
    async with connected(databases.service(service)) as connection:
        for role in (databases.role + "_owner", "postgres", "pg_read_all_data"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f'set role "{role}"')
        role = await connection.fetchrow(
            "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication from pg_roles "
            "where rolname = current_user"
        )
        owned = await connection.fetch("select relname from pg_class where pg_get_userbyid(relowner) = current_user")
    assert role is not None
    assert not any(role.values())
    assert owned == []


@pytest.mark.req("A13")
async def test_a_service_does_not_enter_the_database_of_another(databases: Databases) -> None:
    stranger = databases.service("admission").rpartition("/")[0] + "/" + databases.role
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await asyncpg.connect(stranger)


async def test_the_role_of_a_service_reads_and_writes_rows(databases: Databases, table: str) -> None:
    await databases.migrate(creates(table))
    async with connected(databases.service()) as connection:
        for statement in ("insert into {} values (1)", "update {} set n = 2", "delete from {} where n = 2"):
            assert (await connection.execute(statement.format(table))).endswith(" 1")
