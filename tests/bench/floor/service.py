"""One process of the floor: aio-pika and asyncpg, the hops of one service, and nothing else.

No framework, no schemas, no spans, no checks of who said what; the same queues, exchanges, pool size and prefetch.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aio_pika
import asyncpg
import httpx2
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from bench.floor.hops import HOPS, Answer, Ask, Commit, Provider, Say, Step
from placet.contracts.catalogue import asks, exchange, heard_by, inbox_queue, reply_key, reply_queue, request_queue

PREFETCH = 64
POOL = 4
LINGER_SECONDS = 0.2

COMMIT = """
with changed as (
    insert into floor_row (key, ordinal, body)
    select $1, n, case n when 1 then $2::bytea else '' end from generate_series(1, $3::int) n
    on conflict do nothing
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.*, '' from unnest($4::text[], $5::text[], $6::bytea[]) p where exists (select from changed))
select exists (select from changed) as changed
"""

TABLE = "create table floor_row (key text, ordinal int, body bytea not null, primary key (key, ordinal))"
"""What the hops write to, beside the outbox that every service's database has."""

Json = dict[str, Any]


class Service:
    """The hops of one service. `sizes` are the bytes of the real messages; ours are padded to them."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._name = name
        self._environment = environment
        self._padding = {wire: "x" * max(0, size - 130) for wire, size in json.loads(environment["FLOOR_SIZES"]).items()}
        self._open: dict[str, asyncio.Future[None]] = {}
        self._kept: list[str] = []
        self._deleting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and consume."""
        if url := self._environment.get("PLACET_DATABASE_URL"):
            self._pool: asyncpg.Pool = await asyncpg.create_pool(url, min_size=1, max_size=POOL, reset=_keep_session)
        if url := self._environment.get("PLACET_CRM_URL"):
            token = self._environment["PLACET_CRM_TOKEN"]
            self._http = httpx2.AsyncClient(base_url=url, timeout=5, headers={"Authorization": f"Bearer {token}"})
        self._connection = await aio_pika.connect(self._environment["PLACET_AMQP_URL"])
        self._channel = await self._channel_of()
        self._exchange = await self._channel.get_exchange(exchange(self._name), ensure=False)
        if asks(self._name):
            await self._consume(reply_queue(self._name, 0), on_reply=True)
        if heard_by(self._name, "request"):
            await self._consume(request_queue(self._name))
        await self._consume(inbox_queue(self._name))

    async def _channel_of(self) -> AbstractChannel:
        return await self._connection.channel(on_return_raises=True)

    async def _consume(self, queue: str, *, on_reply: bool = False) -> None:
        channel = await self._channel_of()
        await channel.set_qos(prefetch_count=PREFETCH)
        found = await channel.get_queue(queue, ensure=False)
        if on_reply:
            await found.consume(self._on_reply, no_ack=True, exclusive=True)
        else:
            await found.consume(self._on_message)

    async def _on_reply(self, raw: AbstractIncomingMessage) -> None:
        json.loads(raw.body)
        self._open.pop(raw.correlation_id or "").set_result(None)

    async def _on_message(self, raw: AbstractIncomingMessage) -> None:
        about: Json = json.loads(raw.body)["data"]
        steps = HOPS[self._name].get(raw.type or "", ())
        for index, step in enumerate(steps):
            if step.only in (None, about["mode"]):
                await self._do(step, f"{about['turn_id']}.{raw.type}.{about['state']}.{index}", about, raw)
        await raw.ack()

    async def _do(self, step: Step, key: str, about: Json, raw: AbstractIncomingMessage) -> None:
        match step:
            case Commit():
                await self._commit(step, key, about, raw.body)
            case Say(wire=wire):
                await self._say(wire, key, self._body(wire, about))
            case Ask(wire=wire):
                await self._ask(wire, key, about)
            case Answer(wire=wire):
                message = aio_pika.Message(self._body(wire, about), type=wire, correlation_id=raw.correlation_id)
                await self._exchange.publish(message, raw.reply_to or "")
            case Provider(method=method):
                await self._call(method, key, about["turn_id"])
            case _:
                raise TypeError(step)

    def _body(self, wire: str, about: Json) -> bytes:
        return json.dumps({"type": wire, "data": about, "pad": self._padding.get(wire, "")}).encode()

    async def _commit(self, step: Commit, key: str, about: Json, body: bytes) -> None:
        told = about | {"state": step.state}
        promises = [(f"{key}.{wire}", wire, self._body(wire, told)) for wire in step.says]
        ids, wires, bodies = (list(column) for column in zip(*promises, strict=True)) if promises else ([], [], [])
        changed = await self._pool.fetchval(COMMIT, key, body, step.rows, ids, wires, bodies)
        if changed and promises:
            await asyncio.gather(*(self._say(wire, name, said) for name, wire, said in promises))
            self._kept.extend(ids)
            if self._deleting is None:
                self._deleting = asyncio.create_task(self._delete_kept())

    async def _delete_kept(self) -> None:
        await asyncio.sleep(LINGER_SECONDS)
        kept, self._kept, self._deleting = self._kept, [], None
        await self._pool.execute("delete from outbox where message_id = any($1::text[])", kept)

    async def _say(self, wire: str, key: str, body: bytes) -> None:
        message = aio_pika.Message(body, message_id=key, type=wire, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self._exchange.publish(message, wire)

    async def _ask(self, wire: str, key: str, about: Json) -> None:
        answer = self._open[key] = asyncio.get_running_loop().create_future()
        message = aio_pika.Message(
            self._body(wire, about), type=wire, correlation_id=key, reply_to=reply_key(self._name, 0), expiration=5
        )
        await self._exchange.publish(message, wire)
        await answer

    async def _call(self, method: str, key: str, turn_id: str) -> None:
        path = f"/tenants/bench/customers/{turn_id.removeprefix('turn_')}"
        if method == "POST":
            headers = {"Idempotency-Key": key}
            response = await self._http.post(f"{path}/notes", json={"body": "A note of the floor."}, headers=headers)
        else:
            response = await self._http.get(path)
        response.raise_for_status().json()


async def _keep_session(_connection: Any) -> None:
    """As ours: statements leave nothing in a session."""
