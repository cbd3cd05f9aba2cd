"""What caused a piece of work, and what it promises to say."""

from dataclasses import dataclass
from typing import NamedTuple

from placet.contracts.message import Message, wrap
from placet.telemetry import current_traceparent


class Promise(NamedTuple):
    """A message that a commit owes to the broker: a row of the outbox (the composite type `promise` in SQL)."""

    message_id: str
    wire: str
    body: bytes
    traceparent: str


def promise(service: str, message: Message, *, tenant: str, conversation: str, cause: str = "") -> Promise:
    """Promise a message now: it carries the trace context of the span that is current now, not of who publishes it.

    Raises TooLarge when the message is too large to be said.
    """
    traceparent = current_traceparent()
    envelope = wrap(message, source=service, tenant=tenant, conversation=conversation, cause=cause, traceparent=traceparent)
    return Promise(envelope.id, message.wire, envelope.encode(), traceparent)


@dataclass(frozen=True, slots=True)
class Cause:
    """The delivery that a handler works on: the trusted part of its envelope."""

    service: str
    message_id: str
    tenant: str
    conversation: str
    traceparent: str

    def promise(self, message: Message, *, tenant: str = "", conversation: str = "") -> Promise:
        """Promise a message because of this one, in the same tenant and conversation unless others are named."""
        return promise(
            self.service,
            message,
            tenant=tenant or self.tenant,
            conversation=conversation or self.conversation,
            cause=self.message_id,
        )
