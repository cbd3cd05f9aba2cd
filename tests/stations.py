"""A station: the parts of libs/messaging as any service, in the test's own loop, on a ground.

A station is one test's use of its ground, and finds its queues and tables empty.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import aio_pika
import asyncpg
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue

from grounds import OPERATOR, Ground, Json
from placet.contracts.catalogue import dead_queue, exchange, heard_by, inbox_queue, request_queue
from placet.contracts.message import Message
from placet.messaging import BrokerParking, Cause, Consumer, DatabaseParking, Outbox, Publisher, Requester
from placet.messaging.consumer import Handler
from placet.messaging.parking import Parking
from placet.service.database import Database, parse_query
from placet.service.runner import Part, Running
from placet.testing import wait_until
from wires import Wire

P = TypeVar("P", bound=Part)

DEED = parse_query(
    "deed",
    """
    with done as (insert into deed (name) values (:name) on conflict do nothing returning 1),
    promised as (
        insert into outbox (message_id, wire, body, traceparent)
        select p.* from unnest(:promises::promise[]) p where exists (select from done))
    select exists (select from done) as changed
    """,
)
"""A transition like those of the services: done once by its natural key, with what it promises."""

_DEED_TABLE = "create table if not exists deed (name text primary key check (name <> ''))"


@dataclass
class Heard:
    """What handlers were called with, in order."""

    calls: list[tuple[Message, Cause]] = field(default_factory=list[tuple[Message, Cause]])

    async def note(self, message: Message, cause: Cause) -> None:
        """A handler that does nothing else."""
        self.calls.append((message, cause))

    def tenants(self) -> list[str]:
        """The tenants, in order of handling."""
        return [cause.tenant for _, cause in self.calls]

    def ids(self) -> list[str]:
        """The message ids, in order of handling."""
        return [cause.message_id for _, cause in self.calls]


@dataclass(frozen=True)
class Parked:
    """A parked delivery, wherever its service keeps it."""

    body: bytes
    reason: str
    exchange: str
    routing_key: str
    user_id: str | None


class Station:
    """Gives started parts of any service, and stops them after the test, the last one first."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._open = AsyncExitStack()
        self._databases: dict[str, Database] = {}
        self._running: list[Running] = []

    async def __aenter__(self) -> Self:
        self.operator = await self.channel(OPERATOR)
        for queue in self.ground.topology["queues"]:
            await (await self.operator.get_queue(queue["name"], ensure=False)).purge()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._open.aclose()

    def ended(self) -> list[str]:
        """Why parts have ended by themselves: each would have ended its service."""
        ended = [part.running for part in self._running if part.running.done()]
        return [str(each.exception()) for each in ended if not each.cancelled()]

    async def channel(self, user: str) -> AbstractChannel:
        """A plain channel of a broker user, with confirms, on a connection of its own."""
        connection = await self._open.enter_async_context(await aio_pika.connect(self.ground.amqp(user)))
        return await connection.channel(on_return_raises=True)

    async def wire(self, *, heartbeat: int = 60) -> Wire:
        """A line to the broker, with a heartbeat every so many seconds."""
        made = Wire(self.ground.amqp_url, heartbeat=heartbeat)
        await made.start()
        self._open.push_async_callback(made.stop)
        return made

    async def database(self, service: str) -> Database:
        """The pool of a service; its deeds, outbox and parked deliveries are empty at the start of a test."""
        if service not in self._databases:
            role = self.ground.run.database(service)
            await self.execute(service, f'{_DEED_TABLE}; grant all on deed to "{role}"; truncate deed, outbox, parked')
            self._databases[service] = database = Database(self.ground.postgres(service), size=4)
            await database.start()
            self._open.push_async_callback(database.stop)
        return self._databases[service]

    async def execute(self, service: str, statement: str) -> None:
        """Run a statement as the owner of a service's schema."""
        connection = await asyncpg.connect(self.ground.postgres(service, owner=True))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def rows(self, service: str, table: str) -> list[Json]:
        """All rows of a table."""
        query = parse_query("rows", f"select * from {table}")
        return [dict(row) for row in await (await self.database(service)).all(query)]

    async def parked(self, service: str) -> list[Parked]:
        """What a service has parked; the executor, which has no database, does so among its dead letters."""
        names = ("reason", "exchange", "routing_key", "user_id")
        if service != "executor":
            rows = await self.rows(service, "parked")
            return [Parked(row["body"], *(row[name] for name in names)) for row in rows]
        ready, _ = await self.counts(dead_queue(service))
        headers = [f"placet-{name.replace('_', '-')}" for name in names]
        taken = await self.take(dead_queue(service), ready)
        return [Parked(dead.body, *(str(dead.headers.get(name, "")) for name in headers)) for dead in taken]

    async def publisher(self, service: str, wire: Wire | None = None) -> Publisher:
        """A started publisher."""
        return await self._started(Publisher(service, self._url(service, wire)))

    async def outbox(self, service: str, *, grace: float = 0.0, every: float = 0.1, relay: bool = False) -> Outbox:
        """An outbox with a publisher; with `relay`, it sweeps by itself."""
        made = Outbox(await self.database(service), await self.publisher(service), grace=grace, every=every)
        return await self._started(made) if relay else made

    async def consumer(
        self,
        service: str,
        heard: Heard,
        on: Mapping[type[Any], Handler[Any]] | None = None,
        *,
        parking: Parking | None = None,
        prefetch: int = 64,
        wire: Wire | None = None,
    ) -> Consumer:
        """A started consumer; what `on` does not name is noted in `heard`."""
        publisher = await self.publisher(service)
        made = Consumer(
            service,
            self._url(service, wire),
            parking=parking or await self.parking(service, publisher),
            publisher=publisher,
            prefetch=prefetch,
            user_prefix=self.ground.run.user_prefix,
        )
        for route in (*heard_by(service).values(), *heard_by(service, "request").values()):
            made.on(route.message, (on or {}).get(route.message, heard.note))
        return await self._started(made)

    async def parking(self, service: str, publisher: Publisher) -> Parking:
        """Where this service parks."""
        if service == "executor":
            return BrokerParking(service, publisher)
        database = await self.database(service)
        return DatabaseParking(database, await self._started(Outbox(database, publisher, grace=3600)))

    async def requester(self, service: str, wire: Wire | None = None) -> Requester:
        """A started requester."""
        prefix = self.ground.run.user_prefix
        return await self._started(Requester(service, self._url(service, wire), user_prefix=prefix))

    async def say(self, channel: AbstractChannel, user: str, over: str, key: str, body: bytes, **more: Any) -> None:
        """Publish as a broker user who says who he is, on the exchange of the service `over`."""
        named: Json = {"message_id": "m-1", "user_id": self.ground.run.user_prefix + user} | more
        target = await channel.get_exchange(exchange(over), ensure=False)
        await target.publish(aio_pika.Message(body, delivery_mode=2, **named), key)

    async def counts(self, queue: str) -> tuple[int, int]:
        """Messages that are ready in a queue, and its consumers."""
        async with await aio_pika.connect(self.ground.amqp(OPERATOR)) as connection:
            found = (await (await connection.channel()).declare_queue(queue, passive=True)).declaration_result
        return found.message_count or 0, found.consumer_count or 0

    async def leaves(self, consumer: Consumer, service: str) -> list[str]:
        """Stop the last consumer of a service when all has been sent to it; the ids of what it gives back as it goes."""
        consumed = [inbox_queue(service), *([request_queue(service)] if heard_by(service, "request") else [])]
        for queue in consumed:
            await wait_until(partial(self._delivered, queue), f"{queue} is consumed and empty", within=60)
        await consumer.stop()
        assert await self.counts(dead_queue(service)) == (0, 0)
        left: list[str] = []
        for queue in consumed:
            await wait_until(partial(self._unread, queue), f"nobody consumes {queue}")
            left += await self._rest(queue)
        return left

    async def _rest(self, queue: str) -> list[str]:
        """The ids of what lies in a queue, taken out by a login of now: the broker may have been away."""
        async with await aio_pika.connect(self.ground.amqp(OPERATOR)) as connection:
            found, ids = await (await connection.channel()).get_queue(queue, ensure=False), list[str]()
            while message := await found.get(no_ack=True, fail=False):
                ids.append(message.message_id or "")
        return ids

    async def leaves_nothing(self, consumer: Consumer, service: str) -> None:
        """Conservation (G4): a consumer that is stopped has acknowledged all."""
        assert await self.leaves(consumer, service) == []

    async def _delivered(self, queue: str) -> bool:
        ready, consumers = await self.counts(queue)
        return ready == 0 and consumers > 0

    async def _unread(self, queue: str) -> bool:
        return (await self.counts(queue))[1] == 0

    async def take(self, queue: str, count: int) -> list[AbstractIncomingMessage]:
        """So many messages, taken out of a queue as soon as they are there."""
        found = await self.operator.get_queue(queue, ensure=False)
        taken: list[AbstractIncomingMessage] = []

        async def look() -> bool:
            if (message := await found.get(no_ack=True, fail=False)) is not None:
                taken.append(message)
            return len(taken) == count

        await wait_until(look, f"{count} messages in {queue}")
        return taken

    async def spy(self, service: str) -> AbstractQueue:
        """A queue that gets a copy of all that a service says from now on."""
        queue = await self.operator.declare_queue(exclusive=True)
        await queue.bind(exchange(service), "#")
        return queue

    async def _started(self, part: P) -> P:
        await part.start()
        if isinstance(part, Running):
            self._running.append(part)
        self._open.push_async_callback(part.stop)
        return part

    def _url(self, service: str, wire: Wire | None) -> str:
        url = self.ground.amqp(service)
        return wire.through(url) if wire else url
