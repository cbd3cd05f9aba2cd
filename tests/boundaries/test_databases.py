"""What each database role can do with its own login: read and write the rows of its own service, and nothing else."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest

from placet.local.run import DATABASES
from placet.local.system import System

pytestmark = pytest.mark.req("E1")

each_service = pytest.mark.parametrize("service", DATABASES)

FORBIDDEN = {
    "create table": "create table mine (id int)",
    "create temporary table": "create temporary table mine (id int)",
    "alter table": "alter table outbox add column mine int",
    "drop constraint": "alter table parked drop constraint one_delivery_is_parked_once",
    "disable triggers": "alter table outbox disable trigger all",
    "drop table": "drop table outbox",
    "create index": "create index mine on outbox (wire)",
    "truncate": "truncate outbox",
    "create function": "create function mine() returns int language sql as 'select 1'",
    "create trigger": "create trigger mine before update on outbox for each row execute function tsvector_update_trigger()",
    "create rule": "create rule mine as on insert to outbox do instead nothing",
    "create view": "create view mine as select 1",
    "create schema": "create schema mine",
    "drop extension": "drop extension plpgsql",
    "create role": "create role mine",
    "create database": "create database mine",
    "read the migration ledger": "select * from migration",
    "write the migration ledger": "delete from migration",
    "read a file": "select pg_read_file('/etc/hostname')",
    "run a program": "copy outbox from program 'true'",
}


@asynccontextmanager
async def login(url: str) -> AsyncGenerator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@each_service
async def test_a_service_reads_and_writes_its_own_rows(placet: System, service: str) -> None:
    async with login(placet.database_url(service)) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("insert into outbox (message_id, wire, body, traceparent) values ('m', 'w', '', '')")
        assert await connection.fetchval("delete from outbox where message_id = 'm' returning wire") == "w"
        await transaction.rollback()


@each_service
@pytest.mark.parametrize("statement", FORBIDDEN.values(), ids=FORBIDDEN)
async def test_a_service_changes_no_schema_and_reads_no_ledger(placet: System, service: str, statement: str) -> None:
    async with login(placet.database_url(service)) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


@each_service
async def test_a_service_becomes_nobody_else(placet: System, service: str) -> None:
    administrator = urlsplit(placet.backing.postgres_url).username or "postgres"
    others = [placet.run.database(other) for other in DATABASES if other != service]
    async with login(placet.database_url(service)) as connection:
        for role in (placet.run.owner(service), administrator, *others):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f'set role "{role}"')


@each_service
async def test_a_service_passes_no_row_level_security(placet: System, service: str) -> None:
    async with login(placet.database_url(service)) as connection:
        powers = await connection.fetchrow(
            "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication from pg_roles"
            " where rolname = current_user"
        )
        assert powers is not None
        assert not any(powers.values())
        owned = await connection.fetchval("select count(*) from pg_class where relowner = current_user::regrole")
        assert owned == 0


@each_service
@pytest.mark.parametrize("owner", [False, True], ids=["service", "owner"])
async def test_no_role_opens_the_database_of_another_service(placet: System, service: str, owner: bool) -> None:
    own = urlsplit(placet.database_url(service, owner=owner))
    for other in DATABASES:
        if other != service:
            elsewhere = own._replace(path=f"/{placet.run.database(other)}").geturl()
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied for database"):
                await asyncpg.connect(elsewhere)


async def test_the_executor_has_no_role_and_no_database(placet: System) -> None:
    async with login(placet.backing.postgres_url) as admin:
        name = f"{placet.run.name}_executor%"
        assert await admin.fetchval("select count(*) from pg_roles where rolname like $1", name) == 0
        assert await admin.fetchval("select count(*) from pg_database where datname like $1", name) == 0
