"""The broker's definitions, generated from the catalogue: who exists, may write and read what, and what is bound.

An operator loads them ahead of the services, which declare nothing. Fit for RabbitMQ 3.10 and 4.x.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from placet.contracts.catalogue import (
    CATALOGUE,
    OUTSIDE,
    REPLY_SLOTS,
    SERVICES,
    Route,
    asks,
    dead_queue,
    exchange,
    heard_by,
    inbox_queue,
    reply_key,
    reply_queue,
    request_queue,
)

Json = dict[str, Any]

DEAD_LETTERS = "placet.dlx"
"""Internal, so that no client can publish to it: only the broker moves messages through it."""

PARTIES = (*SERVICES, *OUTSIDE)
"""Everybody with a broker user, an exchange and queues."""


def development_password(user: str) -> str:
    """The password that the committed definitions use. Everybody can read it."""
    return f"{user}-dev-password"


def derived_salt(user: str) -> bytes:
    """A salt that is the same at each generation, so that regenerating changes nothing."""
    return hashlib.sha256(f"placet.salt\n{user}".encode()).digest()[:4]


def password_hash(password: str, salt: bytes) -> str:
    """The broker's `rabbit_password_hashing_sha256`: base64 over four bytes of salt and the salted digest."""
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def definitions(
    vhost: str = "placet",
    user_prefix: str = "",
    password_of: Callable[[str], str] = development_password,
    salt_of: Callable[[str], bytes] = derived_salt,
) -> Json:
    """Everything the broker must know, in the form that `load_definitions` and `rabbitmqctl import_definitions` read.

    `password_of` and `salt_of` get the full user name, prefix and all.
    """
    return {
        "users": [_user(user_prefix + party, password_of, salt_of) for party in PARTIES],
        "vhosts": [{"name": vhost}],
        "permissions": [_permission(user_prefix + party, party, vhost) for party in PARTIES],
        "topic_permissions": [],
        "parameters": [],
        "policies": [{"vhost": vhost, **policy} for policy in POLICIES],
        "exchanges": [{"vhost": vhost, **made} for made in _exchanges()],
        "queues": [{"vhost": vhost, **queue} for party in PARTIES for queue in _queues(party)],
        "bindings": [{"vhost": vhost, **binding} for binding in _bindings()],
    }


POLICIES: tuple[Json, ...] = (
    {
        "name": "placet-inbox",
        "pattern": rf"^placet\.({'|'.join(SERVICES)})\.in$",
        "apply-to": "queues",  # "quorum_queues" is unknown before 3.12
        "priority": 10,
        "definition": {
            "delivery-limit": 20,
            # At-least-once dead-lettering works only together with reject-publish.
            "dead-letter-strategy": "at-least-once",
            "overflow": "reject-publish",
            "max-length": 1_000_000,
        },
    },
    {
        "name": "placet-outside",
        "pattern": rf"^placet\.({'|'.join(OUTSIDE)})\.in$",
        "apply-to": "queues",
        "priority": 10,
        # News for programs that may never come must not stop the services that say it: the oldest is dropped.
        "definition": {"delivery-limit": 20, "overflow": "drop-head", "max-length": 100_000},
    },
    {
        "name": "placet-outside-dead",
        "pattern": rf"^placet\.({'|'.join(OUTSIDE)})\.dead$",
        "apply-to": "queues",
        "priority": 20,
        "definition": {"delivery-limit": 1_000_000, "overflow": "drop-head", "max-length": 100_000},
    },
    {
        "name": "placet-dead",
        "pattern": r"^placet\.[a-z]+\.dead$",
        "apply-to": "queues",
        "priority": 10,
        # RabbitMQ 4 drops a message after 20 returns where nothing says otherwise, and an operator who looks at a dead
        # letter returns it. 3.10 takes no negative limit, so the number is merely out of reach.
        "definition": {"delivery-limit": 1_000_000},
    },
)


def _user(name: str, password_of: Callable[[str], str], salt_of: Callable[[str], bytes]) -> Json:
    return {
        "name": name,
        "password_hash": password_hash(password_of(name), salt_of(name)),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": "",
    }


def _permission(user: str, party: str, vhost: str) -> Json:
    return {
        "user": user,
        "vhost": vhost,
        "configure": "^$",
        "write": rf"^placet\.{party}$",
        "read": rf"^placet\.{party}\.(in|requests|dead|reply\.[0-9]+)$",
    }


def _exchanges() -> Iterator[Json]:
    for name in (*map(exchange, PARTIES), DEAD_LETTERS):
        yield {
            "name": name,
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": name == DEAD_LETTERS,
            "arguments": {},
        }


def _queues(party: str) -> Iterator[Json]:
    dead_lettering = {"x-dead-letter-exchange": DEAD_LETTERS, "x-dead-letter-routing-key": party}
    yield _queue(inbox_queue(party), "quorum", dead_lettering)
    yield _queue(dead_queue(party), "quorum")
    # Questions and answers are transient: an asker asks again, so a classic queue without dead letters is enough.
    if heard_by(party, "request"):
        yield _queue(request_queue(party), "classic")
    for slot in range(REPLY_SLOTS if asks(party) else 0):
        yield _queue(reply_queue(party, slot), "classic")


def _queue(name: str, kind: str, arguments: Json | None = None) -> Json:
    return {
        "name": name,
        "durable": True,
        "auto_delete": False,
        "arguments": {"x-queue-type": kind, **(arguments or {})},
    }


def _bindings() -> Iterator[Json]:
    for route in CATALOGUE:
        yield from _route_bindings(route)
    for asker, answerer in _dialogues():
        yield from _answer_bindings(asker, answerer)
    for party in PARTIES:
        yield _binding(DEAD_LETTERS, dead_queue(party), party)
    # The executor has no database to park what it cannot read in: it publishes it to itself, which only it can do.
    yield _binding(exchange("executor"), dead_queue("executor"), "dead.executor")


def _route_bindings(route: Route) -> Iterator[Json]:
    if route.kind == "reply":
        return
    queue_of = request_queue if route.kind == "request" else inbox_queue
    for consumer in route.consumers:
        yield _binding(exchange(route.publisher), queue_of(consumer), route.wire)


def _dialogues() -> dict[tuple[str, str], None]:
    """Who asks whom: each pair once, however many questions there are between them."""
    return dict.fromkeys((route.publisher, heard) for route in CATALOGUE if route.reply for heard in route.consumers)


def _answer_bindings(asker: str, answerer: str) -> Iterator[Json]:
    """One for each slot of the asker, from the answerer's own exchange, so that nobody else can answer."""
    for slot in range(REPLY_SLOTS):
        yield _binding(exchange(answerer), reply_queue(asker, slot), reply_key(asker, slot))


def _binding(source: str, queue: str, key: str) -> Json:
    return {"source": source, "destination": queue, "destination_type": "queue", "routing_key": key, "arguments": {}}
