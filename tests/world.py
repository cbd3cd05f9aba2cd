"""The people of the scenarios, at the real API: alice asks, ann and amy approve; bob and ben are of another tenant.

Tenants are fresh for each test and begin with `bench`, for which the demonstration provider makes customers on demand.
"""

import json
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import asyncpg
import httpx2

from placet.client import Client, Refused
from placet.local.issuer import APPROVER, ASKER
from placet.local.system import System
from placet.testing import wait_until

Json = dict[str, Any]


def script(*steps: Sequence[Json] | str) -> str:
    """A user's message that brings its own script: a step is what the model says, or the calls that it asks for."""
    return "!script " + json.dumps([{"say": step} if isinstance(step, str) else {"calls": list(step)} for step in steps])


def read(customer: str = "C-42", **more: Any) -> Json:
    """A call that reads a customer."""
    return {"tool": "crm_customer_get", "arguments": {"customer_id": customer}} | more


def create(body: str, customer: str = "C-42", **more: Any) -> Json:
    """A call that adds a note."""
    return {"tool": "crm_note_create", "arguments": {"customer_id": customer, "body": body}} | more


def delete(note: str, customer: str = "C-42", **more: Any) -> Json:
    """A call that deletes a note."""
    return {"tool": "crm_note_delete", "arguments": {"customer_id": customer, "note_id": note}} | more


@dataclass
class World:
    """Two tenants, their people, and the provider's books."""

    system: System
    tenant: str = field(default_factory=lambda: f"bench-{secrets.token_hex(4)}")
    other: str = field(default_factory=lambda: f"bench-{secrets.token_hex(4)}")
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        self.alice = await self.person("alice", *ASKER)
        self.ann = await self.person("ann", *APPROVER)
        self.amy = await self.person("amy", *APPROVER)
        self.bob = await self.person("bob", *ASKER, tenant=self.other)
        self.ben = await self.person("ben", *APPROVER, tenant=self.other)
        self.provider = await self._open.enter_async_context(
            httpx2.AsyncClient(base_url=self.system.provider_url, timeout=30)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def person(self, name: str, *scopes: str, tenant: str = "") -> Client:
        """A client with the token of a person of this tenant."""
        token = self.system.token(name, tenant or self.tenant, *scopes)
        return await self._open.enter_async_context(Client(self.system.url, token))

    async def effects(self, tenant: str = "") -> list[Json]:
        """What happened at the provider in the tenant, in order."""
        found = (await self.provider.get("/_control/effects")).json()
        return [effect for effect in found if effect["tenant"] == (tenant or self.tenant)]

    async def requests(self, method: str = "", tenant: str = "") -> list[Json]:
        """What the provider was asked in the tenant, in order."""
        found = (await self.provider.get("/_control/requests")).json()
        prefix = f"/tenants/{tenant or self.tenant}/"
        return [asked for asked in found if asked["path"].startswith(prefix) and asked["method"].startswith(method)]

    async def fault(self, **faults: Any) -> None:
        """Switch faults of the provider on, and all others off."""
        (await self.provider.put("/_control/faults", json=faults)).raise_for_status()

    async def state(self, turn: Json, state: str, *, who: Client | None = None, within: float = 30.0) -> Json:
        """The conversation once its last turn is in this state."""

        async def look() -> Json | None:
            view = await self._view(turn, who)
            return view if view and view["state"] == state else None

        return await wait_until(look, f"{turn['turn_id']} is {state}", within=within)

    async def cards(self, turn: Json, count: int = 1, *, who: Client | None = None, within: float = 30.0) -> list[Json]:
        """The open cards of the conversation, once there are so many."""

        async def look() -> list[Json] | None:
            view = await self._view(turn, who)
            pending = [card["card"] for card in view["cards"] if card["state"] == "pending"] if view else []
            return pending if len(pending) >= count else None

        return await wait_until(look, f"{count} open cards in {turn['conversation_id']}", within=within)

    async def _view(self, turn: Json, who: Client | None) -> Json | None:
        """The conversation, or nothing while the API or what it needs is down: people load the page again."""
        try:
            return await (who or self.alice).conversation(turn["conversation_id"])
        except httpx2.TransportError:
            return None
        except Refused as refused:
            if refused.status != 503:
                raise
            return None

    async def card(self, turn: Json, *, who: Client | None = None) -> Json:
        """The one open card of the conversation."""
        (found,) = await self.cards(turn, who=who)
        return found

    async def approve(self, card: Json, who: Client | None = None) -> Json:
        """Ann, or somebody else, approves."""
        return await (who or self.ann).decide(card["interrupt_id"], "approve", card["digest"])

    async def deny(self, card: Json, who: Client | None = None, comment: str = "") -> Json:
        """Ann, or somebody else, denies."""
        return await (who or self.ann).decide(card["interrupt_id"], "deny", card["digest"], comment=comment)

    @asynccontextmanager
    async def planner_fault(self, table: str, when: str) -> AsyncGenerator[None]:
        """For the block, a fault of the planner that no waiting mends: such a row of this tenant cannot be written."""
        owner = await asyncpg.connect(self.system.database_url("planner", owner=True))
        try:
            await owner.execute(
                "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'a fault'; end $$;"
                f"create trigger refuse before insert or update on {table} for each row "
                f"when ({when} and new.tenant = '{self.tenant}') execute function refuse()"
            )
            yield
        finally:
            await owner.execute("drop function refuse cascade")
            await owner.close()


def results(view: Json) -> list[Json]:
    """The tool results of a conversation, in order."""
    return [message for message in view["messages"] if message["role"] == "tool"]
