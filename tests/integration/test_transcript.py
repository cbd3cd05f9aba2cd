"""The planner's rows in a real database: what a card and a result that come side by side make of a turn and its calls."""

import pytest

from placet.contracts.ids import new_id
from placet.contracts.turns import Outcome, TurnAccepted
from placet.planner.domain import Turn, replied, settled
from placet.planner.model import CallAsked, Reply
from placet.planner.store import Store
from stations import Station


class Rows:
    """A turn whose model has asked to read a customer and to add a note."""

    def __init__(self, store: Store) -> None:
        self.store, self.turn_id = store, new_id("turn")
        self.read, self.note = new_id("call"), new_id("call")

    async def begin(self) -> None:
        """Store the turn and its two calls."""
        accepted = TurnAccepted(
            turn_id=self.turn_id, conversation_id=new_id("c"), principal="alice", text="hi", mandate="00"
        )
        reply = Reply("", (CallAsked("a", "crm_customer_get", "{}"), CallAsked("b", "crm_note_create", "{}")))
        turn = await self.store.begin("t", accepted)
        assert await self.store.save(turn, replied(turn, reply, [self.read, self.note]), [])

    async def turn(self) -> Turn:
        """The turn as it is stored."""
        return await self.store.turn("t", self.turn_id)

    async def settle(self, tool_call_id: str, outcome: Outcome = "succeeded") -> None:
        """A call has its result."""
        turn = await self.turn()
        change = settled(turn, tool_call_id, outcome, {})
        assert change is not None
        assert await self.store.save(turn, change, [])

    async def states(self) -> tuple[str, list[str]]:
        """The state of the turn, and those of the read and the note."""
        turn = await self.turn()
        return turn.state, [call.state for call in turn.calls]


@pytest.fixture
async def rows(station: Station) -> Rows:
    made = Rows(Store(await station.database("planner"), await station.outbox("planner", grace=3600)))
    await made.begin()
    return made


@pytest.mark.req("T3", "T8")
async def test_a_result_beside_an_open_card_leaves_the_card_s_call_waiting(rows: Rows) -> None:
    assert await rows.store.mark_awaiting("t", rows.note)
    assert await rows.states() == ("executing", ["proposed", "awaiting_approval"])
    await rows.settle(rows.read)
    assert await rows.states() == ("executing", ["succeeded", "awaiting_approval"])
    await rows.settle(rows.note, "denied")
    assert await rows.states() == ("planning", ["succeeded", "denied"])


@pytest.mark.req("T3", "M2")
async def test_b22_a_card_that_comes_after_its_answer_or_twice_changes_nothing(rows: Rows) -> None:
    await rows.settle(rows.note)
    assert not await rows.store.mark_awaiting("t", rows.note)
    assert await rows.store.mark_awaiting("t", rows.read)
    assert not await rows.store.mark_awaiting("t", rows.read)
    assert not await rows.store.mark_awaiting("another", rows.read)
    assert await rows.states() == ("executing", ["awaiting_approval", "succeeded"])


@pytest.mark.req("T3")
async def test_a_card_between_reading_a_turn_and_writing_it_does_not_get_lost(rows: Rows) -> None:
    turn = await rows.turn()
    assert await rows.store.mark_awaiting("t", rows.note)
    change = settled(turn, rows.read, "succeeded", {})
    assert change is not None
    assert await rows.store.save(turn, change, [])
    assert await rows.states() == ("executing", ["succeeded", "awaiting_approval"])


@pytest.mark.req("T2", "T5")
async def test_the_transcript_holds_each_message_with_its_calls_and_results(rows: Rows) -> None:
    await rows.settle(rows.read)
    said = await rows.store.transcript(await rows.turn())
    assert [(each.position, each.role) for each in said] == [(0, "user"), (1, "assistant"), (2, "tool")]
    assert [call.action for call in said[1].calls] == ["crm.customer.get", "crm.note.create"]
    assert (said[2].tool_call_id, said[2].outcome) == (rows.read, "succeeded")
