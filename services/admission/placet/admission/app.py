"""Admission put together: the only place that opens pools, brokers and clients."""

from collections.abc import Sequence

from placet.admission.claims import Claims
from placet.admission.proposals import Proposals
from placet.admission.recovery import Recovery
from placet.admission.settings import Settings
from placet.admission.store import Store
from placet.contracts.commands import ClaimRequested, CommandReported
from placet.contracts.permissions import PermissionDecided
from placet.contracts.turns import ToolCallProposed
from placet.messaging import Consumer, DatabaseParking, Outbox, Publisher, Requester
from placet.service.database import Database
from placet.service.runner import Loop, Part

PACKAGES = ("placet.messaging", "placet.admission")
"""Whose migrations make up its schema, and whose statements the schema must understand."""


def build(settings: Settings) -> Sequence[Part]:
    """The parts of admission, in the order in which they start."""
    database = Database(settings.database_url, size=settings.database_pool, packages=PACKAGES)
    publisher = Publisher("admission", settings.amqp_url)
    outbox = Outbox(database, publisher, grace=settings.relay_grace_seconds)
    requester = Requester("admission", settings.amqp_url, user_prefix=settings.amqp_user_prefix)
    store = Store(database, outbox)
    proposals = Proposals(
        store,
        requester,
        settings.mandate_bytes(),
        ask_seconds=settings.ask_seconds,
        resolve_seconds=settings.resolve_seconds,
    )
    claims = Claims(store, requester, lease_seconds=settings.lease_seconds, ask_seconds=settings.ask_seconds)
    recovery = Loop("recovery", Recovery(store).run_once, settings.recovery_seconds)
    consumer = Consumer.of("admission", settings, DatabaseParking(database, outbox), publisher)
    consumer.on(ToolCallProposed, proposals.on_tool_call_proposed)
    consumer.on(PermissionDecided, proposals.on_permission_decided)
    consumer.on(ClaimRequested, claims.on_claim_requested)
    consumer.on(CommandReported, claims.on_command_reported)
    return [database, publisher, outbox, requester, recovery, consumer]
