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

import aio_pika
import asyncpg
import httpx2
from aio_pika.abc import AbstractChannel, AbstractQueue

from placet.client import Client, Refused
from placet.contracts.catalogue import exchange, inbox_queue
from placet.contracts.message import Message, wrap
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

    def crash_at(self, service: str, message: str, moment: str) -> dict[str, str]:
        """The setting with which a service dies there, in work for this tenant: what other tests left kills nobody."""
        return {"PLACET_CRASH_AT": f"{service}:{message}@{self.tenant}:{moment}"}

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

    async def next_card(self, turn: Json, card: Json) -> Json:
        """An open card of the conversation other than this one, once it is there."""

        async def look() -> Json | None:
            cards = await self.cards(turn)
            return next((each for each in cards if each["interrupt_id"] != card["interrupt_id"]), None)

        return await wait_until(look, "the next card is out")

    async def approve(self, card: Json, who: Client | None = None) -> Json:
        """Ann, or somebody else, approves."""
        return await (who or self.ann).decide(card["interrupt_id"], "approve", card["digest"])

    async def deny(self, card: Json, who: Client | None = None, comment: str = "") -> Json:
        """Ann, or somebody else, denies."""
        return await (who or self.ann).decide(card["interrupt_id"], "deny", card["digest"], comment=comment)

    async def scalar(self, service: str, query: str, *values: Any) -> Any:
        """The one value that a query finds in the database of a service."""
        connection = await asyncpg.connect(self.system.database_url(service))
        try:
            return await connection.fetchval(query, *values)
        finally:
            await connection.close()

    async def say(self, party: str, message: Message, *, times: int = 1) -> str:
        """Publish a message by the login of a service or an outside party, so many times the same. Returns its id."""
        made = wrap(message, source=party, tenant=self.tenant, conversation="", cause="", traceparent="")
        await self.say_bytes(party, message.wire, made.encode(), made.id, times=times)
        return made.id

    async def say_bytes(self, party: str, wire: str, body: bytes, name: str, *, times: int = 1) -> None:
        """The same with any body; `name` is the message id that the broker is told."""
        copy = aio_pika.Message(body, message_id=name, user_id=self.system.run.user_prefix + party, delivery_mode=2)
        async with await aio_pika.connect(self.system.amqp_url(party)) as connection:
            channel = await connection.channel(on_return_raises=True)
            target = await channel.get_exchange(exchange(party), ensure=False)
            for _ in range(times):
                await target.publish(copy, wire)

    async def parked(self, service: str, name: str) -> tuple[str, bytes]:
        """Why a service has put the message aside, and what it keeps of it, once it has."""

        async def look() -> str | None:
            return await self.scalar(service, "select reason from parked where message_id = $1", name)

        reason = await wait_until(look, f"{service} has parked {name}")
        return reason, await self.scalar(service, "select body from parked where message_id = $1", name)

    async def inbox(self, party: str) -> AbstractQueue:
        """What an outside party hears, by its own login."""
        return await (await self._channel(self.system.amqp_url(party))).get_queue(inbox_queue(party), ensure=False)

    async def spy(self, *services: str) -> AbstractQueue:
        """A queue that gets a copy of all that these services say from now on."""
        queue = await (await self._channel(self.system.admin_amqp_url)).declare_queue(exclusive=True)
        for service in services:
            await queue.bind(exchange(service), "#")
        return queue

    async def _channel(self, url: str) -> AbstractChannel:
        connection = await self._open.enter_async_context(await aio_pika.connect(url))
        return await connection.channel()

    async def finish(self, service: str, *copies: str) -> None:
        """Stop a service, and its copies, when they have handled all that they were sent; the fixture starts it again."""
        channel = await self._channel(self.system.admin_amqp_url)

        async def empty() -> bool:
            found = await channel.declare_queue(inbox_queue(service), passive=True)
            return found.declaration_result.message_count == 0

        await wait_until(empty, f"nothing waits for {service}")
        await self.system.stop(service, *copies)  # what was taken from the queue is finished

    @asynccontextmanager
    async def planner_fault(self, table: str, when: str, does: str = "raise exception 'a fault'") -> AsyncGenerator[None]:
        """For the block, a fault of the planner that no waiting mends: such a row of this tenant cannot be written."""
        owner = await asyncpg.connect(self.system.database_url("planner", owner=True))
        try:
            await owner.execute(
                f"create function interfere() returns trigger language plpgsql as $$ begin {does}; return new; end $$;"
                f"create trigger interfere before insert or update on {table} for each row "
                f"when ({when} and new.tenant = '{self.tenant}') execute function interfere()"
            )
            yield
        finally:
            await owner.execute("drop function interfere cascade")
            await owner.close()

    @asynccontextmanager
    async def planner_held(self, table: str, when: str) -> AsyncGenerator[None]:
        """For the block, the planner comes to a standstill where it writes such a row of this tenant."""
        async with self.planner_fault(table, when, "perform pg_advisory_xact_lock(1)"):
            holder = await asyncpg.connect(self.system.database_url("planner", owner=True))
            try:
                await holder.execute("select pg_advisory_lock(1)")
                yield
            finally:
                await holder.close()


def results(view: Json) -> list[Json]:
    """The tool results of a conversation, in order."""
    return [message for message in view["messages"] if message["role"] == "tool"]
