"""Whether a service can be used is found out by using it: a real login, never only an open port.

Each login returns when it succeeded and raises `NotThisWay` with the reason when it did not.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import aio_pika
import aiormq
import asyncpg
import redis
from aio_pika.connection import make_url

from placet.local.addresses import broker_port, credentials
from placet.local.errors import NotThisWay

PATIENCE = 5.0
"""Seconds that one login may take."""

BETWEEN_ATTEMPTS = 0.05

T = TypeVar("T")


def log_in_to_rabbitmq(url: str, *, queue: str | None = None) -> None:
    """Open a connection to the vhost in `url`, as its user; with `queue`, also see that this queue exists."""
    _see_an_open_port(url)
    _in_a_loop_of_its_own(_open_amqp(url, queue))


def log_in_to_postgres(url: str) -> None:
    """Log in as somebody who may make databases and roles."""
    _in_a_loop_of_its_own(_open_postgres(url))


def log_in_to_redis(url: str) -> None:
    """Log in and get an answer to PING."""
    try:
        with redis.Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE) as client:  # pyright: ignore[reportUnknownMemberType]
            client.ping()  # pyright: ignore[reportUnknownMemberType]
    except (OSError, redis.RedisError) as error:
        raise NotThisWay(str(error)) from error


def until(attempt: Callable[[], T], *, within: float, what: str, unless: Callable[[], str | None] = lambda: None) -> T:
    """The first answer of `attempt` that is not `NotThisWay`, tried for `within` seconds.

    `unless` may name a reason to give up early, such as the end of the process that is waited for.
    """
    end = time.monotonic() + within
    while True:
        try:
            return attempt()
        except NotThisWay as error:
            reason = unless() or (f"not within {within:g} s" if time.monotonic() > end else None)
            if reason:
                raise NotThisWay(f"{what}: {reason} ({error})") from error
        time.sleep(BETWEEN_ATTEMPTS)


async def _open_amqp(url: str, queue: str | None) -> None:
    try:
        async with aio_pika.Connection(make_url(url)) as connection:
            await connection.connect(timeout=PATIENCE)
            if queue is not None:
                await (await connection.channel()).get_queue(queue, ensure=True)
    except aiormq.exceptions.InvalidFrameError as error:
        raise NotThisWay(_no_entry(url) if "OpenOk" in str(error) else str(error)) from error
    except (OSError, aiormq.AMQPError) as error:
        raise NotThisWay(str(error) or "no AMQP answer") from error


def _no_entry(url: str) -> str:
    """What the client calls an invalid frame: the broker took the login and closed when it was told the vhost."""
    vhost = unquote(urlsplit(url).path[1:]) or "/"
    user, _ = credentials(url)
    return f"the broker does not open the vhost {vhost!r} to {user!r}: there is none, or the user has no permissions in it"


async def _open_postgres(url: str) -> None:
    try:
        connection = await asyncpg.connect(url, timeout=PATIENCE)
        try:
            able = await connection.fetchval(
                "SELECT rolsuper OR (rolcreatedb AND rolcreaterole) FROM pg_roles WHERE rolname = current_user"
            )
        finally:
            await connection.close(timeout=PATIENCE)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise NotThisWay(str(error) or "no PostgreSQL answer") from error
    if not able:
        raise NotThisWay("the role may not make databases and roles")


def _see_an_open_port(url: str) -> None:
    """Spare the client, and the log it writes to, an attempt that cannot succeed."""
    host = urlsplit(url).hostname or "127.0.0.1"
    try:
        socket.create_connection((host, broker_port(url)), timeout=PATIENCE).close()
    except OSError as error:
        raise NotThisWay(str(error)) from error


def _in_a_loop_of_its_own(work: Coroutine[None, None, None]) -> None:
    """Run it in another thread, because the caller may be inside a running loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()
