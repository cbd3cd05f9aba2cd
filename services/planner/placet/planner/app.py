"""The planner put together: the only place that opens pools, brokers and clients."""

from collections.abc import Sequence
from pathlib import Path

from placet.contracts.permissions import PermissionRequested
from placet.contracts.turns import ToolCallSettled, TurnAccepted, TurnRetried
from placet.messaging import Consumer, DatabaseParking, Outbox, Publisher
from placet.planner.handlers import Handlers
from placet.planner.scripted import ScriptedModel, load_scripts
from placet.planner.settings import Settings
from placet.planner.stalls import Stalls
from placet.planner.store import Store
from placet.service.database import Database
from placet.service.runner import Part

PACKAGES = ("placet.messaging", "placet.planner")
"""Whose migrations make up its schema, and whose statements the schema must understand."""


def build(settings: Settings) -> Sequence[Part]:
    """The parts of the planner, in the order in which they start."""
    model = ScriptedModel(load_scripts(Path(settings.script_file)))
    database = Database(settings.database_url, size=settings.database_pool, packages=PACKAGES)
    publisher = Publisher("planner", settings.amqp_url)
    outbox = Outbox(database, publisher, grace=settings.relay_grace_seconds)
    store = Store(database, outbox)
    parking = DatabaseParking(database, outbox)
    handlers = Handlers(store, model, attempts=settings.model_attempts, seconds=settings.model_seconds)
    stalls = Stalls(parking, {TurnAccepted: handlers.on_turn_accepted, ToolCallSettled: handlers.on_tool_call_settled})
    consumer = Consumer.of("planner", settings, parking, publisher)
    consumer.on(TurnAccepted, handlers.on_turn_accepted, stalls.given_up)
    consumer.on(PermissionRequested, handlers.on_permission_requested)
    consumer.on(ToolCallSettled, handlers.on_tool_call_settled, stalls.given_up)
    consumer.on(TurnRetried, stalls.on_turn_retried)
    return [database, publisher, outbox, consumer]
