"""Rows of the approvals database. Nothing else in permission knows SQL."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime

import asyncpg

from placet.messaging import Outbox, Promise
from placet.permission.domain import Approval
from placet.service.database import Database, load_queries


class Store:
    """The approvals database."""

    def __init__(self, database: Database, outbox: Outbox) -> None:
        self._database = database
        self._outbox = outbox
        self._sql = load_queries("placet.permission")

    async def now(self) -> datetime:
        """The time of the database, by which questions expire."""
        row = await self._database.one(self._sql["now"])
        assert row is not None
        return row["now"]

    async def open(self, approval: Approval, canonical: bytes, promises: Sequence[Promise]) -> bool:
        """Store a question once, with the card or the decision that it promises."""
        values = {name: getattr(approval, name) for name in _COLUMNS if name not in ("past", "decided_at")}
        row = await self._outbox.commit(self._sql["open_approval"], promises, canonical=canonical, **values)
        return row["changed"]

    async def approval(self, tenant: str, interrupt_id: str) -> Approval | None:
        """A question of this tenant."""
        row = await self._database.one(self._sql["approval_by_id"], tenant=tenant, interrupt_id=interrupt_id)
        return None if row is None else _approval(row)

    async def decide(self, decided: Approval, promises: Sequence[Promise]) -> datetime | None:
        """The one conditional write; when it was decided, or None when somebody or time was faster."""
        row = await self._outbox.commit(
            self._sql["decide_approval"],
            promises,
            tenant=decided.tenant,
            interrupt_id=decided.interrupt_id,
            digest=decided.digest,
            state=decided.state,
            decided_by=decided.decided_by,
            comment=decided.comment,
        )
        return row["decided_at"]

    async def expire(self, approval: Approval, promises: Sequence[Promise]) -> bool:
        """Settle what nobody answered."""
        row = await self._outbox.commit(self._sql["expire_approval"], promises, interrupt_id=approval.interrupt_id)
        return row["changed"]

    async def due(self) -> list[Approval]:
        """Open questions whose time is over."""
        return [_approval(row) for row in await self._database.all(self._sql["approvals_due"])]


_COLUMNS = [field.name for field in fields(Approval)]


def _approval(row: asyncpg.Record) -> Approval:
    return Approval(**{name: row[name] for name in _COLUMNS})
