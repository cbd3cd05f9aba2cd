"""Ingress put together: the only place that opens pools, brokers, clients and ports."""

from collections.abc import Sequence

from placet.auth import KeySource, Verifier
from placet.contracts.permissions import PermissionDecided, PermissionRequested
from placet.contracts.turns import TurnChanged, TurnRequested, TurnResumed, TurnStalled
from placet.ingress.handlers import Entrance, Handlers
from placet.ingress.http import Api
from placet.ingress.live import Live
from placet.ingress.settings import Settings
from placet.ingress.store import Store
from placet.messaging import Consumer, DatabaseParking, Outbox, Publisher, Requester
from placet.service.database import Database
from placet.service.runner import Part
from placet.service.server import Server

PACKAGES = ("placet.messaging", "placet.ingress")
"""Whose migrations make up its schema, and whose statements the schema must understand."""


def build(settings: Settings) -> Sequence[Part]:
    """The parts of ingress, in the order in which they start."""
    database = Database(settings.database_url, size=settings.database_pool, packages=PACKAGES)
    publisher = Publisher("ingress", settings.amqp_url)
    outbox = Outbox(database, publisher, grace=settings.relay_grace_seconds)
    requester = Requester("ingress", settings.amqp_url, user_prefix=settings.amqp_user_prefix)
    store = Store(database, outbox)
    live = Live(settings.redis_url, settings.redis_prefix)
    keys = KeySource(settings.auth_jwks)
    verifier = Verifier(keys, issuer=settings.auth_issuer, audience=settings.audience)
    entrance = Entrance(store, settings.mandate_bytes())
    handlers = Handlers(store, live, verifier, entrance)
    consumer = Consumer.of("ingress", settings, DatabaseParking(database, outbox), publisher)
    consumer.on(TurnRequested, handlers.on_turn_requested)
    consumer.on(TurnChanged, handlers.on_turn_changed)
    consumer.on(TurnStalled, handlers.on_stall)
    consumer.on(TurnResumed, handlers.on_stall)
    consumer.on(PermissionRequested, handlers.on_permission_requested)
    consumer.on(PermissionDecided, handlers.on_permission_decided)
    api = Api(store, live, verifier, entrance, requester, answer_seconds=settings.answer_seconds, max_body=settings.max_body)
    server = Server(api.app(), settings.http_host, settings.http_port)
    return [keys, database, publisher, outbox, requester, live, consumer, server]
