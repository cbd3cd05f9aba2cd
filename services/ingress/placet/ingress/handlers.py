"""What ingress does with each message: keep the read model, wake the viewers, accept what frontends ask over the broker."""

import asyncio

from pydantic import ValidationError

from placet.auth import InvalidToken, Principal, Verifier
from placet.canonical import Mandate
from placet.contracts.ids import new_id
from placet.contracts.message import why_invalid
from placet.contracts.permissions import PermissionDecided, PermissionRequested
from placet.contracts.turns import TurnAccepted, TurnChanged, TurnRequested, TurnResumed, TurnRetried, TurnStalled
from placet.ingress.domain import SUBMIT, Accepted, Problem, TurnRequest, not_found, scope_missing
from placet.ingress.live import Live
from placet.ingress.store import Store
from placet.messaging import Cause, promise

PATIENCE = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between looks for earlier news: a redelivery may hold it up; and if it was parked, it never comes."""


class NotAccepted(Exception):
    """A turn that a frontend asks for is refused; the text says why."""


class Entrance:
    """Accepts turns of verified principals, from whichever door they come."""

    def __init__(self, store: Store, mandate_key: bytes) -> None:
        self._store, self._mandate_key = store, mandate_key

    async def accept(self, who: Principal, key: str, request: TurnRequest) -> Accepted:
        """Accept a turn, and vouch for who asked. Raises Problem."""
        if not who.may(SUBMIT):
            raise scope_missing(SUBMIT)
        mandate = Mandate(who.tenant, request.conversation_id or new_id("conv"), new_id("turn"), who.subject)
        turn = TurnAccepted(
            turn_id=mandate.turn_id,
            conversation_id=mandate.conversation_id,
            principal=who.subject,
            text=request.text,
            mandate=mandate.sign(self._mandate_key),
        )
        promised = promise("ingress", turn, tenant=who.tenant, conversation=turn.conversation_id)
        return await self._store.accept(who, key, request.fingerprint(), turn, [promised])

    async def retry(self, who: Principal, conversation_id: str, turn_id: str) -> None:
        """Let the planner take up again what a turn of this principal stands still for. Raises Problem."""
        if not who.may(SUBMIT):
            raise scope_missing(SUBMIT)
        stalls = await self._store.open_stalls(who, conversation_id, turn_id)
        if stalls is None:
            raise not_found("turn")
        if not stalls:
            raise Problem(409, "not_stalled", "the turn does not stand still: there is nothing to try again")
        asked = TurnRetried(turn_id=turn_id, conversation_id=conversation_id, stalls=stalls)
        promised = promise("ingress", asked, tenant=who.tenant, conversation=conversation_id)
        await self._store.retry_turn(who.tenant, stalls, [promised])


class Handlers:
    """One method per message."""

    def __init__(self, store: Store, live: Live, verifier: Verifier, entrance: Entrance) -> None:
        self._store, self._live, self._verifier, self._entrance = store, live, verifier, entrance

    async def on_turn_changed(self, news: TurnChanged, cause: Cause) -> None:
        """The turn moved. News that overtook what was before it waits a little, so that viewers see one order."""
        for pause in (*PATIENCE, None):
            became = await self._store.apply_turn(cause.tenant, news, late=pause is None)
            if became == "applied":
                self._live.tell(cause.tenant, news.conversation_id)
            if became != "early" or pause is None:
                return
            await asyncio.sleep(pause)

    async def on_stall(self, news: TurnStalled | TurnResumed, cause: Cause) -> None:
        """The planner cannot go on with the turn, or can again."""
        if await self._store.apply_stall(cause.tenant, news):
            self._live.tell(cause.tenant, news.conversation_id)

    async def on_permission_requested(self, card: PermissionRequested, cause: Cause) -> None:
        """A card is out."""
        if await self._store.show_card(cause.tenant, card):
            self._live.tell(cause.tenant, card.conversation_id)

    async def on_permission_decided(self, decided: PermissionDecided, cause: Cause) -> None:
        """A card is decided. What a rule decided had no card."""
        if decided.decided_by.startswith("rule:"):
            return
        if await self._store.close_card(cause.tenant, decided):
            self._live.tell(cause.tenant, decided.conversation_id)

    async def on_turn_requested(self, asked: TurnRequested, cause: Cause) -> None:
        """A frontend asks for a turn over the broker (U2). Raises NotAccepted when it cannot be; it is parked."""
        try:
            who = await self._verifier.verify(asked.authorization)
        except InvalidToken as invalid:
            raise NotAccepted(f"the person's token is not valid: {invalid}") from invalid
        try:
            request = TurnRequest(conversation_id=asked.conversation_id, text=asked.text)
            await self._entrance.accept(who, asked.request_id, request)
        except ValidationError as invalid:
            raise NotAccepted(why_invalid(invalid)) from invalid
        except Problem as problem:
            raise NotAccepted(f"{problem.code}: {problem.detail}") from problem
