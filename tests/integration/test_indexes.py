"""What a statement reads does not grow with what it does not look for: with rows that wait, and with a tenant's other rows.

PostgreSQL chooses worst while a table has no statistics (new, or restored from a backup), and keeps what it chose until it
has some. So these tests ask for the plans that it makes then.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import asyncpg
import pytest

from placet.local.run import DATABASES
from placet.service.database import Query, load_queries
from stations import Station

STATEMENTS = [
    (service, query)
    for service in DATABASES
    for package in ("placet.messaging", f"placet.{service}")
    for query in load_queries(package).values()
]
SWEEPS = [(service, query) for service, query in STATEMENTS if query.name.endswith(("_due", "_lost", "_over"))]
OF_A_WHOLE_TENANT = {("retry_turn", "stall_open")}
"""Statements that may read all that an index has of a tenant: it holds the few turns that stand still."""


def names(statements: list[tuple[str, Query]]) -> list[str]:
    return [f"{service}-{query.name}" for service, query in statements]


async def scans(station: Station, service: str, query: Query) -> list[dict[str, Any]]:
    """How the statement looks into tables, by the plan for any values at all."""
    connection = await asyncpg.connect(station.ground.postgres(service))
    try:
        await connection.execute(f"set plan_cache_mode = force_generic_plan; prepare asked as {query.text}")
        values = ", ".join(["null"] * len(query.parameters))
        plan = await connection.fetchval(f"explain (format json) execute asked {f'({values})' if values else ''}")
    finally:
        await connection.close()
    return list(_scans(json.loads(plan)))


def _scans(plan: Any) -> Iterator[dict[str, Any]]:
    match plan:
        case list():
            for each in cast("list[Any]", plan):
                yield from _scans(each)
        case dict():
            node = cast("dict[str, Any]", plan)
            if "Index Name" in node or node.get("Node Type") == "Seq Scan":
                yield node
            yield from _scans(list(node.values()))
        case _:
            pass


@pytest.mark.req("T1")
@pytest.mark.parametrize(("service", "query"), STATEMENTS, ids=names(STATEMENTS))
async def test_no_statement_reads_a_whole_table_an_index_or_a_tenant(service: str, query: Query, station: Station) -> None:
    for scan in await scans(station, service, query):
        asked = scan.get("Index Cond", "")
        if (query.name, scan.get("Index Name")) not in OF_A_WHOLE_TENANT:
            assert asked, scan
            assert not re.fullmatch(r"\(tenant = [^()]+\)", asked), scan


@pytest.mark.req("T1")
@pytest.mark.parametrize(("service", "query"), SWEEPS, ids=names(SWEEPS))
async def test_a_look_for_what_is_due_reads_nothing_that_is_not(service: str, query: Query, station: Station) -> None:
    asked = [scan.get("Index Cond", "") for scan in await scans(station, service, query)]
    assert any("statement_timestamp()" in condition for condition in asked), asked


@pytest.mark.parametrize("service", DATABASES)
async def test_no_whole_index_but_a_primary_key_begins_with_the_tenant(service: str, station: Station) -> None:
    """The looks behind foreign keys have no plan that can be asked for; they find one index that fits, and no other."""
    found = await station.rows(service, INDEXES)
    assert {row["begins"] for row in found}
    assert [row["name"] for row in found if row["begins"] == "tenant"] == []


INDEXES = """(select i.indexrelid::regclass::text as name, a.attname as begins
                from pg_index i left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
                join pg_class t on t.oid = i.indrelid
               where t.relnamespace = 'public'::regnamespace and not i.indisprimary and i.indpred is null) found"""
