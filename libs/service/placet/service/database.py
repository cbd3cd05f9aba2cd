"""PostgreSQL: a small pool, SQL that lives in named files, and statements that meet are sent together.

A transition is one statement that answers with exactly one row. Those that wait while another is under way go out as one
batch in one commit (natural batching: a batch of one when nothing else waits, so it adds no latency).
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import asyncpg

from placet.service.crash import crash_point

BATCH = 64
"""Statements in one batch at most; more gives nothing."""

DATABASE_AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""What waiting and trying again can mend. Among it what asyncpg calls a fault of its own: a statement that meets the
server's last word before the end of its connection."""


@dataclass(frozen=True, slots=True)
class Query:
    """One statement, its name, and its parameters in the order of their first use.

    `order` is the parameter that names a row which calls of several statements lock. A batch goes in its order: two
    batches that lock the same rows in different orders would wait for each other until PostgreSQL kills one.
    """

    name: str
    text: str
    parameters: tuple[str, ...]
    order: str = ""

    def bind(self, values: dict[str, Any]) -> tuple[Any, ...]:
        """The values in the order of the statement. Raises TypeError for a missing or an extra one."""
        if values.keys() != set(self.parameters):
            raise TypeError(f"{self.name} takes {sorted(self.parameters)}, got {sorted(values)}")
        return tuple(values[name] for name in self.parameters)


def parse_query(name: str, source: str) -> Query:
    """Turn `:named` parameters into `$n`; casts (`::text`) stay as they are. `-- In the order of :name` sets the order.

    Raises ValueError when that is no parameter.
    """
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    code = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("--"))
    text = re.sub(r"(?<![:\w]):([a-z_]\w*)", number, code)
    ordered = re.search(r"^-- In the order of :(\w+)", source, re.MULTILINE)
    if ordered and ordered[1] not in names:
        raise ValueError(f"{name} goes in the order of {ordered[1]}, which is none of its parameters")
    return Query(name, text, tuple(names), ordered[1] if ordered else "")


def load_queries(package: str) -> dict[str, Query]:
    """Every `sql/*.sql` of a package, by the file's name without its ending."""
    found = [file for file in (files(package) / "sql").iterdir() if file.name.endswith(".sql")]
    return {(name := file.name[:-4]): parse_query(name, file.read_text("utf-8")) for file in found}


class WrongSchema(Exception):
    """The database does not have what a statement of ours names."""


class Database:
    """A pool of connections of one service's own role. `packages` are those whose statements it must understand."""

    setting = "PLACET_DATABASE_URL"

    def __init__(self, url: str, *, size: int, packages: Sequence[str] = ()) -> None:
        self._url = url
        self._size = size
        self._packages = packages
        self._batches: dict[Query, _Batch] = {}

    async def start(self) -> None:
        """Open the pool. Raises what asyncpg raises when the database does not answer, and WrongSchema."""
        self._pool: asyncpg.Pool = await asyncpg.create_pool(
            self._url, min_size=1, max_size=self._size, command_timeout=30, reset=_keep_session
        )
        try:
            async with self._pool.acquire() as connection:
                for package in self._packages:
                    for query in load_queries(package).values():
                        await _understand(connection, query)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close the pool after the statements under way, or without them when the database says nothing any more."""
        try:
            await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def one(self, query: Query, **values: Any) -> asyncpg.Record | None:
        """The first row of a reading statement."""
        return await self._pool.fetchrow(query.text, *query.bind(values))

    async def all(self, query: Query, **values: Any) -> list[asyncpg.Record]:
        """All rows of a statement."""
        return await self._pool.fetch(query.text, *query.bind(values))

    async def transition(self, query: Query, **values: Any) -> asyncpg.Record:
        """Run a transition. Raises LookupError when it breaks the rule of answering with one row."""
        batch = self._batches.get(query)
        if batch is None:
            batch = self._batches[query] = _Batch(self._pool, query)
        crash_point("before_commit", query.name)
        row = await batch.run(query.bind(values))
        crash_point("after_commit", query.name)
        return row


async def _understand(connection: Any, query: Query) -> None:
    try:
        await connection.prepare(query.text)
    except asyncpg.SyntaxOrAccessError as error:
        raise WrongSchema(f"{query.name}: {error}; `migrate` brings a service's schema up to date") from error


async def _keep_session(_connection: Any) -> None:
    """Statements of ours leave nothing in a session, so the pool need not spend a round trip on cleaning it."""


class _Batch:
    """The waiting calls of one statement. While one batch is under way, the next one gathers."""

    def __init__(self, pool: asyncpg.Pool, query: Query) -> None:
        self._pool = pool
        self._query = query
        self._waiting: list[tuple[tuple[Any, ...], asyncio.Future[asyncpg.Record]]] = []
        self._task: asyncio.Task[None] | None = None

    async def run(self, values: tuple[Any, ...]) -> asyncpg.Record:
        future: asyncio.Future[asyncpg.Record] = asyncio.get_running_loop().create_future()
        self._waiting.append((values, future))
        if self._task is None:
            self._task = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
                if self._query.order:
                    place = self._query.parameters.index(self._query.order)
                    batch.sort(key=lambda call: call[0][place])
                await self._send(batch)
        finally:
            self._task = None

    async def _send(self, batch: list[tuple[tuple[Any, ...], asyncio.Future[asyncpg.Record]]]) -> None:
        try:
            rows = await self._fetch([values for values, _ in batch])
        except LookupError as error:  # it has committed: to send it again would do everything twice
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        except Exception as error:
            await self._one_by_one(batch, error)
            return
        for (_, future), row in zip(batch, rows, strict=True):
            if not future.done():
                future.set_result(row)

    async def _one_by_one(
        self, batch: list[tuple[tuple[Any, ...], asyncio.Future[asyncpg.Record]]], error: Exception
    ) -> None:
        """A batch commits or fails as a whole: find the culprit, so that its neighbours do not suffer."""
        if len(batch) > 1:
            for call in batch:
                await self._send([call])
        elif not batch[0][1].done():
            batch[0][1].set_exception(error)

    async def _fetch(self, calls: list[tuple[Any, ...]]) -> list[asyncpg.Record]:
        if len(calls) == 1:
            rows = await self._pool.fetch(self._query.text, *calls[0])
        else:
            rows = await self._pool.fetchmany(self._query.text, calls)
        if len(rows) != len(calls):
            raise LookupError(f"{self._query.name} answered {len(rows)} rows to {len(calls)} calls")
        return rows
