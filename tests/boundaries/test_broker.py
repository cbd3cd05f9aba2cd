"""What each broker user can do with its own login and a client of its own making: speak on its own exchange, hear its own
queues, and nothing else (M3)."""

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlsplit

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractQueue
from aio_pika.connection import make_url
from aio_pika.exceptions import DeliveryError
from aiormq.exceptions import AMQPError, ChannelAccessRefused, ChannelPreconditionFailed

from placet.contracts.catalogue import CATALOGUE, dead_queue, exchange, inbox_queue, said_by
from placet.contracts.topology import DEAD_LETTERS, PARTIES
from placet.local.system import System

P = ParamSpec("P")
Attempt = Callable[Concatenate[AbstractChannel, P], Awaitable[Any]]

pytestmark = pytest.mark.req("M3")

each_party = pytest.mark.parametrize("party", PARTIES)


@asynccontextmanager
async def login(placet: System, party: str) -> AsyncGenerator[AbstractConnection]:
    """A connection with the party's own name and password."""
    async with await aio_pika.connect(placet.amqp_url(party)) as connection:
        yield connection


async def refused(connection: AbstractConnection, attempt: Attempt[P], *args: P.args, **more: P.kwargs) -> None:
    """The broker refuses access; the attempt gets a channel of its own, because a refusal closes the channel."""
    channel = await connection.channel()
    with pytest.raises(ChannelAccessRefused):
        await attempt(channel, *args, **more)


# What an attacker tries never asks first whether the queue or exchange is there.


async def publish(
    channel: AbstractChannel, source: str, key: str, message: aio_pika.Message | None = None, *, mandatory: bool = False
) -> None:
    target = await channel.get_exchange(source, ensure=False) if source else channel.default_exchange
    await target.publish(message or aio_pika.Message(b"{}"), key, mandatory=mandatory)


async def queue_of(channel: AbstractChannel, name: str) -> AbstractQueue:
    return await channel.get_queue(name, ensure=False)


async def declare_queue(
    channel: AbstractChannel, name: str, *, exclusive: bool = False, arguments: dict[str, Any] | None = None
) -> None:
    await channel.declare_queue(name or None, exclusive=exclusive, arguments=arguments)


async def declare_exchange(channel: AbstractChannel, name: str, arguments: dict[str, Any] | None = None) -> None:
    await channel.declare_exchange(name, arguments=arguments)


async def bind(channel: AbstractChannel, queue: str, source: str) -> None:
    await (await queue_of(channel, queue)).bind(source, "#")


async def unbind(channel: AbstractChannel, queue: str, source: str, key: str) -> None:
    await (await queue_of(channel, queue)).unbind(source, key)


async def bind_exchange(channel: AbstractChannel, target: str, source: str) -> None:
    await (await channel.get_exchange(target, ensure=False)).bind(source, "#")


async def consume(channel: AbstractChannel, queue: str) -> None:
    async with (await queue_of(channel, queue)).iterator() as _:
        pass


async def purge(channel: AbstractChannel, queue: str) -> None:
    await (await queue_of(channel, queue)).purge()


async def delete_queue(channel: AbstractChannel, queue: str) -> None:
    await channel.queue_delete(queue, if_unused=False, if_empty=False)


async def delete_exchange(channel: AbstractChannel, name: str) -> None:
    await channel.exchange_delete(name)


def others(party: str) -> list[str]:
    return [other for other in PARTIES if other != party]


@each_party
async def test_a_party_speaks_on_its_own_exchange_and_hears_its_own_queue(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        await publish(await connection.channel(), exchange(party), "nobody.listens")
        await consume(await connection.channel(), dead_queue(party))


@each_party
async def test_nobody_speaks_on_the_exchange_of_another(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        for other in others(party):
            for key in ["anything", *(route.wire for route in said_by(other))]:
                await refused(connection, publish, exchange(other), key)


@each_party
async def test_nobody_reaches_a_queue_around_the_exchanges(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        for other in PARTIES:
            await refused(connection, publish, "", inbox_queue(other))
        for source in (DEAD_LETTERS, "amq.topic", "amq.direct", "amq.fanout"):
            await refused(connection, publish, source, party)


@each_party
async def test_nobody_declares_a_queue(placet: System, party: str) -> None:
    fresh = secrets.token_hex(4)
    forged = {"x-dead-letter-exchange": exchange("permission"), "x-dead-letter-routing-key": "permission.decided.v1"}
    async with login(placet, party) as connection:
        for name in ("", fresh, f"amq.gen-{fresh}", f"placet.{party}.{fresh}", f"placet.{party}.reply.99"):
            await refused(connection, declare_queue, name)
            await refused(connection, declare_queue, name, exclusive=True)
            await refused(connection, declare_queue, name, arguments=forged)


@each_party
async def test_nobody_declares_an_exchange(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        for name in (secrets.token_hex(4), f"placet.{party}.more"):
            await refused(connection, declare_exchange, name)
            await refused(connection, declare_exchange, name, {"alternate-exchange": exchange("permission")})


@each_party
async def test_nobody_changes_what_is_bound(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        for other in others(party):
            await refused(connection, bind, inbox_queue(party), exchange(other))
            await refused(connection, bind, inbox_queue(other), exchange(party))
            await refused(connection, bind_exchange, exchange(other), exchange(party))
        await refused(connection, unbind, inbox_queue("admission"), exchange("permission"), "permission.decided.v1")


@each_party
async def test_nobody_hears_or_empties_the_queue_of_another(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        for other in others(party):
            for queue in (inbox_queue(other), dead_queue(other)):
                await refused(connection, consume, queue)
                await refused(connection, purge, queue)


@each_party
async def test_nobody_removes_what_the_operator_declared(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        for name in PARTIES:
            await refused(connection, delete_queue, inbox_queue(name))
            await refused(connection, delete_exchange, exchange(name))


@each_party
async def test_nobody_signs_with_the_name_of_another(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        for other in others(party):
            signed = aio_pika.Message(b"{}", user_id=placet.run.user_prefix + other)
            channel = await connection.channel()
            with pytest.raises(ChannelPreconditionFailed, match="user_id"):
                await publish(channel, exchange(party), "nobody.listens", signed)


@each_party
async def test_what_another_may_say_reaches_nobody_when_said_on_ones_own_exchange(placet: System, party: str) -> None:
    async with login(placet, party) as connection:
        channel = await connection.channel(on_return_raises=True)
        for wire in [route.wire for route in CATALOGUE if route.publisher != party]:
            with pytest.raises(DeliveryError):
                await publish(channel, exchange(party), wire, mandatory=True)


@each_party
@pytest.mark.parametrize("header", ["CC", "BCC"])
async def test_copies_by_header_reach_nobody(placet: System, party: str, header: str) -> None:
    """These headers add routing keys; on brokers before 4.0 they get around topic permissions."""
    foreign = [route.wire for route in CATALOGUE if route.publisher != party]
    copied = aio_pika.Message(b"{}", headers={header: [*foreign, *map(inbox_queue, PARTIES)]})
    async with login(placet, party) as connection:
        channel = await connection.channel(on_return_raises=True)
        with pytest.raises(DeliveryError):
            await publish(channel, exchange(party), "nobody.listens", copied, mandatory=True)


@each_party
async def test_a_party_has_no_other_vhost(placet: System, party: str) -> None:
    elsewhere = urlsplit(placet.amqp_url(party))._replace(path="/%2F").geturl()
    refused = aio_pika.Connection(make_url(elsewhere))
    with pytest.raises(AMQPError):
        await refused.connect()
    await refused.close()
