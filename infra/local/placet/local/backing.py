"""RabbitMQ, PostgreSQL and Redis for one run: found on this machine, or started for it and removed after it."""

import os
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from placet.local.broker_admin import BrokerAdmin
from placet.local.errors import BackingError, NotThisWay
from placet.local.services import Found, Postgres, RabbitMQ, Redis, Service

AUTO = ("given", "shared", "docker", "private")
"""The ways in the order in which `auto` tries them, for each service by itself."""


@dataclass(frozen=True)
class Backing:
    """Three services that have answered a login, with the power of an administrator."""

    amqp_url: str
    """The administrator's login, without a vhost."""
    postgres_url: str
    """The superuser's login."""
    redis_url: str
    broker: BrokerAdmin
    """How vhosts, users and topology are made on this broker."""


@contextmanager
def backing(mode: str | None = None, *, durable: bool = False) -> Generator[Backing]:
    """The backing services for the block.

    `mode` is auto, given, shared, docker or private; without it, PLACET_INFRA says, or auto. A URL in PLACET_AMQP_URL,
    PLACET_POSTGRES_URL or PLACET_REDIS_URL binds `auto`: it must work. `durable` asks the services that are started
    here to sync to the disk as in production.

    Raises `BackingError` when a service cannot be had, with the command or variable that mends it. What was started
    ends with the block, or with this process if it is killed.
    """
    ways = _ways(mode or os.environ.get("PLACET_INFRA") or "auto")
    with ExitStack() as stack:
        rabbitmq, postgres, redis = _all_at_once([RabbitMQ(), Postgres(), Redis()], ways, stack, durable)
        assert rabbitmq.broker
        yield Backing(rabbitmq.url, postgres.url, redis.url, rabbitmq.broker)


@dataclass(frozen=True)
class _Answer:
    found: Found
    account: str


def _all_at_once(services: list[Service], ways: tuple[str, ...], stack: ExitStack, durable: bool) -> list[Found]:
    with ThreadPoolExecutor(len(services)) as pool:
        attempts = [pool.submit(_find, service, ways, stack, durable) for service in services]
    errors = [error for attempt in attempts if isinstance(error := attempt.exception(), BackingError)]
    if errors:
        raise BackingError("\n".join(map(str, errors)))
    answers = [attempt.result() for attempt in attempts]
    print("placet:", ", ".join(answer.account for answer in answers), file=sys.stderr, flush=True)
    return [answer.found for answer in answers]


def _ways(mode: str) -> tuple[str, ...]:
    if mode == "auto":
        return AUTO
    if mode in AUTO:
        return (mode,)
    raise BackingError(f"PLACET_INFRA is {mode!r}; it can be auto, {', '.join(AUTO)}")


def _find(service: Service, ways: tuple[str, ...], stack: ExitStack, durable: bool) -> _Answer:
    started = time.monotonic()
    refusals: list[str] = []
    for way in ways:
        try:
            found = _by(way, service, stack, durable)
        except NotThisWay as error:
            refusals.append(f"{way}: {error}")
        else:
            return _Answer(found, f"{service.name} {way} {time.monotonic() - started:.1f} s")
    raise BackingError(_advice(service, ways, refusals))


def _by(way: str, service: Service, stack: ExitStack, durable: bool) -> Found:
    match way:
        case "given":
            return _given(service)
        case "shared":
            return service.shared()
        case "docker":
            return service.docker(stack, durable=durable)
        case _:
            return service.private(stack, durable=durable)


def _given(service: Service) -> Found:
    """The service named by its variable. A URL that does not work is an error, never a reason to try another way."""
    url = os.environ.get(service.variable)
    if not url:
        raise NotThisWay(f"{service.variable} is not set")
    try:
        return service.given(url)
    except (NotThisWay, ValueError) as error:  # the clients refuse a malformed URL by ValueError
        raise BackingError(f"{service.variable} names a {service.name} that cannot be used: {error}") from error


def _advice(service: Service, ways: tuple[str, ...], refusals: list[str]) -> str:
    """What would have mended it, by the only way that was open, or by all of them; then why each way was not."""
    remedy = {
        "given": f"set {service.variable}",
        "shared": f"start {service.name} on its standard port with its default login, or set PLACET_INFRA=private",
        "docker": "start the Docker engine, or set PLACET_INFRA=private",
        "private": service.remedy,
    }.get(ways[0] if len(ways) == 1 else "", f"{service.remedy}, or set {service.variable}")
    return "\n  ".join([f"No {service.name} to run on; {remedy}.", *refusals])
