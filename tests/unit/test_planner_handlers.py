"""The planner's handlers with a store in memory: what a wild model says never stops a turn without a word (T11)."""

import json
from collections.abc import Sequence
from typing import cast

import pytest

from placet.contracts.turns import TurnAccepted
from placet.messaging import Cause, Promise
from placet.planner.domain import Change, Turn
from placet.planner.handlers import Handlers
from placet.planner.model import CallAsked, ModelFailed, Reply, Said
from placet.planner.store import Store

ACCEPTED = TurnAccepted(turn_id="turn_1", conversation_id="c1", principal="alice", text="hello", mandate="00")
CAUSE = Cause("planner", "msg_1", "t1", "c1", "")


class Rows:
    """One turn, as the store would keep it; text that PostgreSQL cannot keep is refused as PostgreSQL would."""

    def __init__(self) -> None:
        self.saved: list[Change] = []
        self.promised: list[Promise] = []

    async def begin(self, tenant: str, accepted: TurnAccepted) -> Turn:
        return await self.turn(tenant, accepted.turn_id)

    async def turn(self, tenant: str, turn_id: str) -> Turn:
        return Turn(tenant, turn_id, "c1", "alice", "00", "planning", "", 1, 0, 1, ())

    async def transcript(self, turn: Turn) -> list[Said]:
        return [Said(0, "user", "hello")]

    async def save(self, turn: Turn, change: Change, promises: Sequence[Promise]) -> bool:
        for text in (change.reason, *(said.text for said in change.said), *(call.arguments for call in change.called)):
            if "\0" in text or (not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)):
                raise ValueError("PostgreSQL does not keep this text")
        self.saved.append(change)
        self.promised += promises
        return True


class Says:
    """A model that always says the same, or fails as many times as it is told and then says it."""

    name = "says"

    def __init__(self, reply: Reply, failures: int = 0) -> None:
        self._reply, self._failures, self.asked = reply, failures, 0

    async def ask(self, transcript: Sequence[Said]) -> Reply:
        self.asked += 1
        if self.asked <= self._failures:
            raise ModelFailed("busy")
        return self._reply


async def planned(model: Says) -> Rows:
    """What is stored of a turn that this model plans."""
    rows = Rows()
    await Handlers(cast("Store", rows), model, attempts=2, seconds=30).on_turn_accepted(ACCEPTED, CAUSE)
    return rows


def call(arguments: str = "{}", tool: str = "crm_note_create") -> Reply:
    return Reply("", (CallAsked("call_0", tool, arguments),))


@pytest.mark.req("T2")
async def test_a_call_is_stored_and_proposed_in_one_change() -> None:
    rows = await planned(Says(call()))
    assert [change.state for change in rows.saved] == ["executing"]
    assert [promise.wire for promise in rows.promised] == ["tool_call.proposed.v1", "turn.changed.v1"]


@pytest.mark.req("T2", "T8")
async def test_the_first_news_of_a_turn_brings_the_user_s_message_too() -> None:
    for model in (Says(call()), Says(Reply("done")), Says(Reply("done"), failures=9)):
        news = json.loads((await planned(model)).promised[-1].body)["data"]
        assert [said["text"] for said in news["messages"]][:1] == ["hello"]


@pytest.mark.req("T11")
async def test_a_model_that_fails_is_asked_again_and_then_the_turn_fails_with_the_reason() -> None:
    mended, gone = Says(Reply("done"), failures=1), Says(Reply("done"), failures=2)
    assert [change.state for change in (await planned(mended)).saved] == ["completed"]
    (change,) = (await planned(gone)).saved
    assert (change.state, change.reason) == ("failed", "the model failed: busy")
    assert (mended.asked, gone.asked) == (2, 2)


@pytest.mark.req("T11", "A1")
@pytest.mark.parametrize(
    "reply",
    [
        call('{"body":"' + "x" * 40_000 + '"}'),
        call('{"body":"\ud800"}'),
        call('{"body":"\0"}'),
        call(tool="\ud800"),
        call(tool="x" * 1000),
        call(tool=""),
        Reply("a word \0"),
        Reply("a word \udfff"),
    ],
    ids=["long arguments", "surrogate", "nul", "odd tool", "long tool", "no tool", "nul in text", "surrogate in text"],
)
async def test_a_reply_that_no_message_can_carry_does_not_leave_the_turn_hanging(reply: Reply) -> None:
    assert len((await planned(Says(reply))).saved) == 1
