"""The executor put together: the only place that opens brokers and clients, and the only one that sees a credential."""

from collections.abc import Sequence

from placet.contracts.commands import CommandReady, ResourceResolve
from placet.executor.connectors.crm import Crm
from placet.executor.handlers import Handlers
from placet.executor.settings import Settings
from placet.messaging import BrokerParking, Consumer, Publisher, Requester
from placet.service.runner import Part


def build(settings: Settings) -> Sequence[Part]:
    """The parts of the executor, in the order in which they start."""
    crm = Crm(
        str(settings.crm_url),
        settings.crm_token.get_secret_value(),
        replay_seconds=settings.crm_replay_seconds,
        timeout=settings.provider_seconds,
    )
    publisher = Publisher("executor", settings.amqp_url)
    requester = Requester("executor", settings.amqp_url, user_prefix=settings.amqp_user_prefix)
    handlers = Handlers(
        crm,
        requester,
        publisher,
        ask_seconds=settings.ask_seconds,
        dispatch_share=settings.dispatch_share,
        provider_seconds=settings.provider_seconds,
    )
    consumer = Consumer.of("executor", settings, BrokerParking("executor", publisher), publisher)
    consumer.on(CommandReady, handlers.on_command_ready)
    consumer.on(ResourceResolve, handlers.on_resource_resolve)
    return [crm, publisher, requester, consumer]
