"""What a waiting approval takes: bytes in each database, and memory of each service."""

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from placet.local.run import DATABASES
from placet.local.system import System

_SIZE = """
select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class
 where relkind = 'r' and relnamespace = 'public'::regnamespace
"""


async def database_bytes(system: System) -> dict[str, int]:
    """The bytes of every table with its indexes, by database, after a vacuum, so that kept promises do not count."""
    return {service: await _bytes(system, service) for service in DATABASES}


async def _bytes(system: System, service: str) -> int:
    parts = urlsplit(system.backing.postgres_url)
    connection = await asyncpg.connect(urlunsplit(parts._replace(path=f"/{system.run.database(service)}")))
    try:
        await connection.execute("vacuum")
        return int(await connection.fetchval(_SIZE))
    finally:
        await connection.close()


def memory(system: System) -> dict[str, int]:
    """Resident bytes of each service now."""
    return {name: process.rss() for name, process in system.services.items()}


def per_item(before: Mapping[str, int], after: Mapping[str, int], count: int) -> dict[str, float]:
    """The growth of each, shared out among so many."""
    return {name: (after[name] - before[name]) / count for name in after}
