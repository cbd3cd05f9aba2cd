"""The permission service put together: the only place that opens pools, brokers and clients."""

from collections.abc import Sequence
from pathlib import Path

from placet.auth import KeySource, Verifier
from placet.contracts.permissions import DecisionRelayed, DecisionSubmitted, DecisionVerify, PermissionAsked
from placet.messaging import Consumer, DatabaseParking, Outbox, Publisher
from placet.permission.expiry import Expiry
from placet.permission.handlers import Handlers
from placet.permission.policy import load_policy
from placet.permission.settings import Settings
from placet.permission.store import Store
from placet.service.database import Database
from placet.service.runner import Loop, Part

PACKAGES = ("placet.messaging", "placet.permission")
"""Whose migrations make up its schema, and whose statements the schema must understand."""


def build(settings: Settings) -> Sequence[Part]:
    """The parts of the permission service, in the order in which they start."""
    database = Database(settings.database_url, size=settings.database_pool, packages=PACKAGES)
    publisher = Publisher("permission", settings.amqp_url)
    outbox = Outbox(database, publisher, grace=settings.relay_grace_seconds)
    store = Store(database, outbox)
    keys = KeySource(settings.auth_jwks)
    verifier = Verifier(keys, issuer=settings.auth_issuer, audience=settings.decision_audience)
    handlers = Handlers(store, load_policy(Path(settings.policy_file)), verifier)
    expiry = Loop("expiry", Expiry(store).run_once, settings.expiry_seconds)
    consumer = Consumer.of("permission", settings, DatabaseParking(database, outbox), publisher)
    consumer.on(PermissionAsked, handlers.on_permission_asked)
    consumer.on(DecisionSubmitted, handlers.on_decision_submitted)
    consumer.on(DecisionRelayed, handlers.on_decision_relayed)
    consumer.on(DecisionVerify, handlers.on_decision_verify)
    return [keys, database, publisher, outbox, expiry, consumer]
