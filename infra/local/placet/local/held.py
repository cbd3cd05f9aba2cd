"""What the services of a run hold: transactions in their databases, deliveries in their hands, messages in their queues."""

import asyncio

import aio_pika
import asyncpg

from placet.contracts.catalogue import SERVICES
from placet.contracts.topology import definitions
from placet.local.run import DATABASES
from placet.local.system import System
from placet.testing import wait_until

QUEUES = [name for queue in definitions()["queues"] if (name := queue["name"]).split(".")[1] in SERVICES]
"""The queues that the five services read; the frontend and the approver have their own."""

_SESSIONS = """
select count(*) as sessions, count(xact_start) as in_transaction
  from pg_stat_activity where usename = current_user and pid <> pg_backend_pid()
"""


async def no_transaction(running: System) -> bool:
    """Whether every service has sessions, and none of them is in a transaction."""
    return all([await _idle(running.database_url(service)) for service in DATABASES])


async def _idle(url: str) -> bool:
    """Asked in the name of the role itself: of other roles PostgreSQL shows the times to superusers only."""
    connection = await asyncpg.connect(url)
    try:
        seen = await connection.fetchrow(_SESSIONS)
    finally:
        await connection.close()
    return seen is not None and seen["sessions"] > 0 and seen["in_transaction"] == 0


async def no_delivery(running: System) -> bool:
    """Whether every delivery has been acknowledged, as far as the broker's figures say; they may be some seconds old."""
    return await asyncio.to_thread(running.backing.broker.unacknowledged, running.run.vhost) == {}


async def left_in_queues(running: System) -> dict[str, int]:
    """The messages in each queue of the services, once these are dead: what they had in hand has come back by then."""
    async with await aio_pika.connect(running.admin_amqp_url) as connection:
        channel = await connection.channel()

        async def counts() -> dict[str, tuple[int, int]]:
            found = {name: (await channel.declare_queue(name, passive=True)).declaration_result for name in QUEUES}
            return {name: (each.consumer_count or 0, each.message_count or 0) for name, each in found.items()}

        async def unread() -> dict[str, tuple[int, int]] | None:
            now = await counts()
            return None if any(consumers for consumers, _ in now.values()) else now

        found = await wait_until(unread, "nobody consumes the queues of the services")
        return {name: messages for name, (_, messages) in found.items() if messages}
