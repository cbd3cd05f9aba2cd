"""What the planner does with each message: read the turn, change it purely, write; and ask the model between two writes."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from placet.contracts.ids import new_id
from placet.contracts.message import Message
from placet.contracts.permissions import PermissionRequested
from placet.contracts.turns import (
    MessageView,
    ToolCallProposed,
    ToolCallSettled,
    ToolCallView,
    TurnAccepted,
    TurnChanged,
)
from placet.messaging import Cause
from placet.planner import domain
from placet.planner.domain import Change, Turn
from placet.planner.model import Model, ModelFailed, Reply, Said
from placet.planner.store import Store
from placet.service.crash import crash_point
from placet.telemetry import call_span

log = structlog.get_logger()


class Handlers:
    """One method per message. Nothing is kept between two of them."""

    def __init__(self, store: Store, model: Model, *, attempts: int, seconds: float) -> None:
        self._store, self._model = store, model
        self._attempts, self._seconds = attempts, seconds

    async def on_turn_accepted(self, accepted: TurnAccepted, cause: Cause) -> None:
        """Begin the turn and ask the model. A second delivery goes on where the first one was cut."""
        await self._plan(await self._store.begin(cause.tenant, accepted), cause)

    async def on_permission_requested(self, card: PermissionRequested, cause: Cause) -> None:
        """The call waits for a person. From here on nothing anywhere holds its turn in memory (T1)."""
        await self._store.mark_awaiting(cause.tenant, card.tool_call_id)

    async def on_tool_call_settled(self, settled: ToolCallSettled, cause: Cause) -> None:
        """Record the one result; then the next call, or, when every call has its result, the next question (T3, T4)."""
        turn = await self._change(
            cause,
            settled.turn_id,
            lambda turn: domain.settled(turn, settled.tool_call_id, settled.outcome, settled.result),
        )
        await self._plan(turn, cause)

    async def _plan(self, turn: Turn, cause: Cause) -> None:
        """Ask the model if the turn is at that point. No transaction is open meanwhile."""
        if turn.state != "planning":
            return
        transcript = await self._store.transcript(turn)
        untold = [said for said in transcript if said.role == "user" and said.position == turn.next_position - 1]
        try:
            reply = await self._ask(transcript)
        except ModelFailed as error:
            await self._save(turn, domain.failed(f"the model failed: {error}"), untold, cause)
            return
        crash_point("after_model")
        change = domain.replied(turn, reply, [new_id("call") for _ in reply.calls])
        await self._save(turn, change, untold, cause)

    async def _ask(self, transcript: list[Said]) -> Reply:
        """A reply that can be used. Raises ModelFailed when the last attempt has none either (T11)."""
        for attempt in range(1, self._attempts):
            try:
                return await self._ask_once(transcript)
            except ModelFailed:
                await asyncio.sleep(0.2 * 2**attempt)
        return await self._ask_once(transcript)

    async def _ask_once(self, transcript: list[Said]) -> Reply:
        results = sum(said.role == "tool" for said in transcript)
        log.info("model.asked", action="model.asked", model=self._model.name, messages=len(transcript), results=results)
        try:
            with call_span(f"chat {self._model.name}", gen_ai__operation__name="chat"):
                async with asyncio.timeout(self._seconds):
                    reply = await self._model.ask(transcript)
        except TimeoutError as error:
            raise ModelFailed("it did not answer in time") from error
        if why := domain.unusable(reply):
            raise ModelFailed(f"its reply cannot be used: {why}")
        return reply

    async def _change(self, cause: Cause, turn_id: str, step: Callable[[Turn], Change | None]) -> Turn:
        """Read, change, write, until the write finds what was read; the turn as it is then."""
        while True:
            turn = await self._store.turn(cause.tenant, turn_id)
            change = step(turn)
            if change is None:
                return turn
            if await self._save(turn, change, [], cause):
                return domain.changed(turn, change)

    async def _save(self, turn: Turn, change: Change, untold: Sequence[Said], cause: Cause) -> bool:
        """Write a change with what it promises: proposals to admission, the news to ingress.

        `untold` is what was said before this change and no news has brought yet: the user's message.
        """
        messages: list[Message] = [_proposal(turn, call) for call in change.propose]
        messages.append(
            TurnChanged(
                turn_id=turn.turn_id,
                conversation_id=turn.conversation_id,
                revision=turn.revision + 1,
                state=change.state,
                reason=change.reason,
                messages=tuple(_view(said, change) for said in (*untold, *change.said)),
            )
        )
        return await self._store.save(turn, change, [cause.promise(message) for message in messages])


def _proposal(turn: Turn, call: domain.Call) -> ToolCallProposed:
    return ToolCallProposed(
        turn_id=turn.turn_id,
        conversation_id=turn.conversation_id,
        tool_call_id=call.tool_call_id,
        principal=turn.principal,
        mandate=turn.mandate,
        action=call.action,
        arguments=call.arguments,
    )


def _view(said: Said, change: Change) -> MessageView:
    calls = change.called if said.role == "assistant" else ()
    return MessageView(
        position=said.position,
        role=said.role,
        text=said.text,
        tool_call_id=said.tool_call_id,
        outcome=said.outcome,
        tool_calls=tuple(
            ToolCallView(tool_call_id=call.tool_call_id, action=call.action, arguments=call.arguments) for call in calls
        ),
    )
