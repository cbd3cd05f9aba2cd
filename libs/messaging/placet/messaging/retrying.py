"""Handling parked messages again, when somebody asks for it."""

from collections.abc import Mapping
from typing import Any, TypeVar

import structlog

from placet.contracts.message import Message
from placet.messaging.consumer import WAITING_HELPS, GivenUp, Handler, first_line
from placet.messaging.messages import Cause
from placet.messaging.parking import DatabaseParking

log = structlog.get_logger()

M = TypeVar("M", bound=Message)


async def handle_again(
    parking: DatabaseParking,
    asked: Cause,
    turn_id: str,
    on: Mapping[type[M], Handler[Any]],
    given_up: GivenUp[Any],
) -> None:
    """Handle what is parked of a turn, in the order in which it failed, until one fails again; that is told once more.

    Raises what waiting can mend. A crash on the way only means that something is handled twice, which changes nothing.
    """
    for parked in await parking.of_turn(asked.tenant, turn_id, tuple(on)):
        message, wire = parked.envelope.message, parked.envelope.message.wire
        cause = Cause(asked.service, parked.envelope.id, asked.tenant, asked.conversation, asked.traceparent)
        try:
            await on[type(message)](message, cause)
        except WAITING_HELPS:
            raise
        except Exception as error:
            why, attempt = first_line(error), parked.attempts + 1
            log.error("message.failed", action="message.failed", wire=wire, attempt=attempt, error=why)
            await parking.failed_again(parked, why, (await given_up(message, cause, attempt)).told)
            return
        await parking.handled(parked)
        log.info("message.unparked", action="message.unparked", wire=wire, attempts=parked.attempts)
