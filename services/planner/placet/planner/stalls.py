"""Turns that stand still because a message of theirs keeps failing: said, kept, and taken up again on request (B17)."""

from collections.abc import Mapping
from typing import Any

import structlog

from placet.contracts.ids import new_id
from placet.contracts.message import Message, decode
from placet.contracts.turns import ToolCallSettled, TurnAccepted, TurnResumed, TurnRetried, TurnStalled
from placet.messaging import WAITING_HELPS, Cause, DatabaseParking, Handler, Kept, Stall
from placet.service.logs import first_line

log = structlog.get_logger()


class Stalls:
    """The messages that a turn cannot do without, when their handlers `on` them fail."""

    def __init__(self, parking: DatabaseParking, on: Mapping[type[Message], Handler[Any]]) -> None:
        self._parking, self._on = parking, on
        self._known = {kind.wire: kind for kind in on}

    def given_up(self, message: TurnAccepted | ToolCallSettled, cause: Cause) -> Stall:
        """The turn cannot go on without this message."""
        stall_id = new_id("stall")
        told = _stalled(message.turn_id, message.conversation_id, stall_id, 1, message.wire)
        return Stall(cause.tenant, message.turn_id, stall_id, cause.promise(told))

    async def on_turn_retried(self, asked: TurnRetried, cause: Cause) -> None:
        """The cause may be mended: handle again what is kept of the turn, and say of each stall what became of it."""
        kept = await self._parking.of_turn(cause.tenant, asked.turn_id)
        for stall_id in sorted({*asked.stalls} - {each.stall_id for each in kept}):
            await self._over(asked, stall_id, cause)
        for each in kept:
            await self._again(asked, each, cause)

    async def _again(self, asked: TurnRetried, kept: Kept, cause: Cause) -> None:
        """A crash on the way only means that a message is handled twice, which changes nothing."""
        try:
            envelope = decode(kept.body, self._known)
            own = Cause(cause.service, envelope.id, cause.tenant, envelope.conversation, cause.traceparent)
            await self._on[type(envelope.message)](envelope.message, own)
        except WAITING_HELPS:
            raise
        except Exception as error:
            why, attempt = first_line(error), kept.attempts + 1
            log.error("message.failed", action="message.failed", wire=kept.wire, attempt=attempt, error=why)
            told = _stalled(asked.turn_id, asked.conversation_id, kept.stall_id, attempt, kept.wire)
            await self._parking.failed_again(cause.tenant, kept, why, cause.promise(told))
        else:
            await self._over(asked, kept.stall_id, cause)

    async def _over(self, asked: TurnRetried, stall_id: str, cause: Cause) -> None:
        told = TurnResumed(turn_id=asked.turn_id, conversation_id=asked.conversation_id, stall_id=stall_id)
        await self._parking.out_of_the_way(cause.tenant, stall_id, cause.promise(told))


def _stalled(turn_id: str, conversation_id: str, stall_id: str, attempt: int, wire: str) -> TurnStalled:
    reason = f"{wire} could not be taken up; it is kept, and can be tried again"
    return TurnStalled(turn_id=turn_id, conversation_id=conversation_id, stall_id=stall_id, attempt=attempt, reason=reason)
