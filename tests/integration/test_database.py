"""Transitions on a real PostgreSQL: those that meet share a commit, and none of them suffers for another."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from placet.local.backing import Backing
from placet.service.database import BATCH, DATABASE_AWAY, Database, WrongSchema, parse_query
from placet.testing import wait_until

GATE = 7
"""The advisory lock behind which statements wait when a test holds it."""

KEEP = parse_query(
    "keep", "insert into kept (n, tenth) values (:n::int, 10 / :n::int) returning n, txid_current() as commit"
)
PASS = parse_query(
    "pass",
    "with gate as materialized (select pg_advisory_xact_lock_shared(7)) "
    "select :n::int as n, txid_current() as commit from gate",
)
ORDERED = parse_query(
    "ordered",
    "-- In the order of :n\n"
    "with gate as materialized (select pg_advisory_xact_lock_shared(7)) "
    "select :n::int as n, nextval('place') as place from gate",
)
SOMETIMES = parse_query("sometimes", "insert into kept (n) select :n::int where :n::int > 0 returning n")
SESSIONS = (
    "select state from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
    "and backend_type = 'client backend'"
)
COUNT = parse_query("count", "select count(*) as rows, count(distinct n) as values from kept")


@pytest.fixture(scope="module")
async def url(backing: Backing) -> AsyncGenerator[str]:
    """A throw-away database with one table."""
    name = f"placet_database_{secrets.token_hex(4)}"
    admin = await asyncpg.connect(backing.postgres_url)
    await admin.execute(f"create database {name}")
    found = urlsplit(backing.postgres_url)._replace(path=f"/{name}").geturl()
    made = await asyncpg.connect(found)
    await made.execute("create table kept (n int not null, tenth int); create sequence place")
    await made.close()
    yield found
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


@pytest.fixture
async def control(url: str) -> AsyncGenerator[asyncpg.Connection]:
    """The test's own connection."""
    connection = await asyncpg.connect(url)
    await connection.execute("truncate kept")
    yield connection
    await connection.close()


@pytest.fixture
async def database(url: str, control: asyncpg.Connection) -> AsyncGenerator[Database]:
    made = Database(url, size=3)
    await made.start()
    yield made
    await made.stop()


@asynccontextmanager
async def closed_gate(control: asyncpg.Connection) -> AsyncGenerator[None]:
    """Whoever passes the gate waits until the block ends."""
    await control.execute("select pg_advisory_lock($1)", GATE)
    try:
        yield
    finally:
        await control.execute("select pg_advisory_unlock_all()")


async def at_the_gate(control: asyncpg.Connection) -> int:
    """The server process that waits there, once there is one."""

    async def look() -> int | None:
        return await control.fetchval(
            "select pid from pg_locks where locktype = 'advisory' and not granted "
            "and database = (select oid from pg_database where datname = current_database())"
        )

    return await wait_until(look, "a statement waits at the gate")


def begin(*calls: Coroutine[Any, Any, asyncpg.Record]) -> list[asyncio.Task[asyncpg.Record]]:
    return [asyncio.create_task(call) for call in calls]


async def outcomes(tasks: list[asyncio.Task[asyncpg.Record]]) -> list[asyncpg.Record | BaseException]:
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.req("M6")
async def test_calls_that_meet_share_commits_and_each_gets_its_own_row(database: Database) -> None:
    rows = await asyncio.gather(*(database.transition(KEEP, n=n) for n in range(1, 3 * BATCH + 1)))
    assert [row["n"] for row in rows] == list(range(1, 3 * BATCH + 1))
    commits = [row["commit"] for row in rows]
    assert len(set(commits)) <= 4
    assert max(commits.count(commit) for commit in commits) <= BATCH


async def test_a_call_that_meets_nobody_is_a_commit_of_its_own(database: Database) -> None:
    rows = [await database.transition(KEEP, n=n) for n in (1, 2, 3)]
    assert len({row["commit"] for row in rows}) == 3


@pytest.mark.req("M6")
async def test_while_a_batch_is_under_way_the_next_one_gathers(database: Database, control: asyncpg.Connection) -> None:
    async with closed_gate(control):
        first = begin(database.transition(PASS, n=0))
        await at_the_gate(control)
        later = begin(*(database.transition(PASS, n=n) for n in range(1, 21)))
        await asyncio.sleep(0)
    rows = await asyncio.gather(*first, *later)
    assert [row["n"] for row in rows] == list(range(21))
    assert len({row["commit"] for row in rows}) == 2


@pytest.mark.req("M6")
async def test_a_batch_goes_in_the_order_of_the_rows_that_others_lock_too(
    database: Database, control: asyncpg.Connection
) -> None:
    """Two batches that lock the same rows in different orders would wait for each other."""
    async with closed_gate(control):
        first = begin(database.transition(ORDERED, n=0))
        await at_the_gate(control)
        later = begin(*(database.transition(ORDERED, n=n) for n in (5, 3, 9, 4)))
        await asyncio.sleep(0)
    rows = await asyncio.gather(*first, *later)
    assert [row["n"] for row in rows] == [0, 5, 3, 9, 4]
    assert [row["n"] for row in sorted(rows, key=lambda row: row["place"])] == [0, 3, 4, 5, 9]


@pytest.mark.req("M6")
async def test_statements_of_another_name_do_not_wait(database: Database, control: asyncpg.Connection) -> None:
    async with closed_gate(control):
        waiting = begin(database.transition(PASS, n=1))
        await at_the_gate(control)
        assert (await database.transition(KEEP, n=1))["n"] == 1
        assert not waiting[0].done()
    assert (await waiting[0])["n"] == 1


@pytest.mark.req("M4")
@pytest.mark.parametrize("place", [0, 7, 19])
async def test_a_call_that_fails_fails_alone(database: Database, place: int) -> None:
    values = [*range(1, place + 1), 0, *range(place + 1, 20)]
    found = await outcomes(begin(*(database.transition(KEEP, n=n) for n in values)))
    assert isinstance(found.pop(place), asyncpg.DivisionByZeroError)
    assert [row["n"] for row in found if isinstance(row, asyncpg.Record)] == list(range(1, 20))
    count = await database.one(COUNT)
    assert count is not None
    assert tuple(count) == (19, 19)


@pytest.mark.req("M4")
@pytest.mark.parametrize("neighbours", [0, 5])
async def test_a_value_that_cannot_be_sent_fails_alone_and_waiting_does_not_help(
    database: Database, neighbours: int
) -> None:
    found = await outcomes(begin(*(database.transition(KEEP, n=n) for n in (2**40, *range(1, neighbours + 1)))))
    error = found[0]
    assert isinstance(error, Exception)
    assert [row["n"] for row in found[1:] if isinstance(row, asyncpg.Record)] == list(range(1, neighbours + 1))
    assert not isinstance(error, DATABASE_AWAY), f"{type(error).__name__} would be retried for ever"


@pytest.mark.req("M2")
async def test_a_statement_that_breaks_the_rule_of_one_row_is_an_error_and_nothing_is_done_twice(database: Database) -> None:
    with pytest.raises(LookupError, match="sometimes"):
        await database.transition(SOMETIMES, n=0)
    found = await outcomes(begin(*(database.transition(SOMETIMES, n=n) for n in (1, 2, -1, 3))))
    assert isinstance(found[2], LookupError)
    count = await database.one(COUNT)
    assert count is not None
    assert count["rows"] == count["values"]


@pytest.mark.req("M2")
async def test_a_caller_who_leaves_takes_nothing_from_the_others(database: Database, control: asyncpg.Connection) -> None:
    async with closed_gate(control):
        under_way = begin(database.transition(PASS, n=0))
        await at_the_gate(control)
        gathering = begin(*(database.transition(PASS, n=n) for n in range(1, 10)))
        await asyncio.sleep(0)
        for leaver in (under_way[0], gathering[4]):
            leaver.cancel()
    found = await outcomes([*under_way, *gathering])
    assert [index for index, each in enumerate(found) if isinstance(each, asyncio.CancelledError)] == [0, 5]
    assert [row["n"] for row in found if isinstance(row, asyncpg.Record)] == [1, 2, 3, 4, 6, 7, 8, 9]
    assert (await database.transition(PASS, n=11))["n"] == 11


@pytest.mark.req("M5")
async def test_a_lost_connection_is_an_error_that_waiting_mends(database: Database, control: asyncpg.Connection) -> None:
    async with closed_gate(control):
        calls = begin(database.transition(PASS, n=1))
        await control.execute("select pg_terminate_backend($1)", await at_the_gate(control))
        (error,) = await outcomes(calls)
    assert isinstance(error, DATABASE_AWAY)
    assert (await database.transition(PASS, n=2))["n"] == 2


@pytest.mark.req("M5")
async def test_when_the_connection_of_a_batch_is_lost_every_caller_hears_of_it(
    database: Database, control: asyncpg.Connection
) -> None:
    async with closed_gate(control):
        calls = begin(*(database.transition(PASS, n=n) for n in range(20)))
        await control.execute("select pg_terminate_backend($1)", await at_the_gate(control))
    found = await outcomes(calls)
    for n, each in enumerate(found):
        assert each["n"] == n if isinstance(each, asyncpg.Record) else isinstance(each, DATABASE_AWAY)
    assert (await database.transition(PASS, n=20))["n"] == 20


@pytest.mark.req("M5")
async def test_a_database_that_does_not_answer_is_an_error_that_waiting_mends(url: str) -> None:
    nowhere = Database(urlsplit(url)._replace(netloc="postgres@127.0.0.1:1").geturl(), size=1)
    with pytest.raises(DATABASE_AWAY):
        await nowhere.start()


@pytest.mark.req("M5", "U5")
async def test_a_database_without_our_schema_is_noticed_at_start_and_not_by_the_first_message(
    url: str, control: asyncpg.Connection
) -> None:
    with pytest.raises(WrongSchema, match=r'relation "\w+" does not exist; `migrate` brings'):
        await Database(url, size=1, packages=("placet.messaging",)).start()

    async def left() -> bool:
        return await control.fetch(SESSIONS) == []

    await wait_until(left, "no connection is left")


async def test_stopping_finishes_what_is_under_way(url: str, control: asyncpg.Connection) -> None:
    database = Database(url, size=1)
    await database.start()
    async with closed_gate(control):
        calls = begin(database.transition(PASS, n=1))
        await at_the_gate(control)
        stopping = asyncio.create_task(database.stop())
        await asyncio.sleep(0)
        assert not stopping.done()
    await stopping
    assert [row["n"] for row in await asyncio.gather(*calls)] == [1]


async def test_a_wrong_set_of_values_is_refused_before_anything_is_sent(database: Database) -> None:
    with pytest.raises(TypeError, match="keep"):
        await database.transition(KEEP, m=1)
    assert (await database.transition(KEEP, n=1))["n"] == 1


@pytest.mark.req("T1")
async def test_between_statements_no_transaction_is_open(database: Database, control: asyncpg.Connection) -> None:
    await asyncio.gather(*(database.transition(KEEP, n=n) for n in range(1, 50)), database.all(COUNT), database.one(COUNT))
    assert {row["state"] for row in await control.fetch(SESSIONS)} == {"idle"}
