"""The outbox: a transition and what it promises are one statement; the promises are published straight after the commit.

What a crash leaves behind, the relay finds and publishes again. Deleting kept promises is gathered, for a promise that is
published twice harms nobody: every consumer is idempotent by natural key.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import structlog

from placet.messaging.messages import Promise
from placet.messaging.publisher import Publisher
from placet.service.crash import crash_point
from placet.service.database import Database, Query, load_queries
from placet.service.logs import first_line
from placet.service.runner import Loop

log = structlog.get_logger()

BATCH = 64
FRESH = 2000
"""Promises that wait in memory for being published straight away; beyond it, the relay takes them from their rows."""

LINGER_SECONDS = 0.2
"""How long kept promises gather before their rows are deleted."""


class Outbox:
    """Commits state and promises together, then keeps the promises."""

    def __init__(self, database: Database, publisher: Publisher, *, grace: float, every: float = 1.0) -> None:
        self._database = database
        self._publisher = publisher
        self._queries = load_queries("placet.messaging")
        self._grace = grace
        self._relay = Loop("relay", self.relay_once, every)
        self._fresh: list[Promise] = []
        self._kept: list[str] = []
        self._publishing: asyncio.Task[None] | None = None
        self._deleting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to sweep for promises that nobody kept."""
        await self._relay.start()
        self.running = self._relay.running

    async def stop(self) -> None:
        """Publish what was committed, delete what was published, and end."""
        await self._relay.stop()
        while self._publishing:
            await self._publishing
        if self._deleting:
            self._deleting.cancel()
            await asyncio.gather(self._deleting, return_exceptions=True)
            await self._delete_kept()

    async def commit(self, transition: Query, promises: Sequence[Promise] = (), **values: Any) -> asyncpg.Record:
        """Run a transition that takes `:promises` and answers `changed`; when it changed something, publish them."""
        row = await self._database.transition(transition, promises=list(promises), **values)
        if row["changed"] and promises and len(self._fresh) < FRESH:
            self._fresh.extend(promises)
            if self._publishing is None:
                self._publishing = asyncio.create_task(self._publish_fresh())
        return row

    async def _publish_fresh(self) -> None:
        try:
            while self._fresh:
                batch, self._fresh = self._fresh[:BATCH], self._fresh[BATCH:]
                if not await self._publish(batch):
                    self._fresh = []  # the broker is away: the rows are there, and the relay finds them
        finally:
            self._publishing = None

    async def _publish(self, batch: list[Promise]) -> bool:
        """Publish a batch; whether any of it was taken."""
        errors = await self._publisher.publish(batch)
        crash_point("after_publish")
        for each, error in zip(batch, errors, strict=True):
            if error is None:
                self._kept.append(each.message_id)
            else:
                log.warning("outbox.unsent", action="outbox.unsent", wire=each.wire, error=error)
        if self._deleting is None and self._kept:
            self._deleting = asyncio.create_task(self._delete_later())
        return None in errors

    async def _delete_later(self) -> None:
        try:
            while self._kept:
                await asyncio.sleep(LINGER_SECONDS)
                await self._delete_kept()
        except Exception as error:
            log.warning("outbox.undeleted", action="outbox.undeleted", error=first_line(error))
        finally:
            self._deleting = None

    async def _delete_kept(self) -> None:
        """What cannot be deleted now is deleted with the next: the relay would publish it all again."""
        kept, self._kept = self._kept, []
        try:
            if kept:
                await self._database.all(self._queries["outbox_sent"], message_ids=kept)
        except BaseException:
            self._kept = kept + self._kept
            raise

    async def relay_once(self) -> int:
        """Publish promises older than the grace; how many were kept. No transaction is open while the broker is asked."""
        rows = await self._database.all(
            self._queries["outbox_due"], hold_seconds=30.0, grace_seconds=self._grace, most=BATCH
        )
        if not rows:
            return 0
        found = [Promise(row["message_id"], row["wire"], row["body"], row["traceparent"]) for row in rows]
        errors = await self._publisher.publish(found, again=True)
        crash_point("after_relay")
        kept = [each.message_id for each, error in zip(found, errors, strict=True) if error is None]
        if kept:
            await self._database.all(self._queries["outbox_sent"], message_ids=kept)
        await self._put_back(rows, errors)
        return len(kept)

    async def _put_back(self, rows: Sequence[asyncpg.Record], errors: Sequence[str | None]) -> None:
        failed = [
            (row["message_id"], error, _wait(row["attempts"])) for row, error in zip(rows, errors, strict=True) if error
        ]
        if failed:
            ids, why, waits = (list(column) for column in zip(*failed, strict=True))
            await self._database.all(self._queries["outbox_failed"], message_ids=ids, errors=why, waits=waits)
            log.warning("outbox.unsent", action="outbox.unsent", count=len(failed), error=why[0])


def _wait(attempts: int) -> float:
    """Seconds until the next attempt: doubling, at most half a minute."""
    return min(30.0, 0.5 * 2 ** min(attempts, 6))
