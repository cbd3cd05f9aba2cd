"""From a claim to what is known: one key for every request, and no guess about an uncertain effect (E2, E3, E4, B35)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from placet.canonical import CanonicalCommand
from placet.executor.connector import Ambiguous, Done, NotSent, Refused, Target
from placet.executor.dispatch import Known, Undecided, dispatch

NOTE = CanonicalCommand("t1", "alice", "crm.note.create", 1, "C-42", {"customer_id": "C-42", "body": "hello"}, "1")
DONE = Done("rcpt_1", {"note_id": "note_1"})


class Clock:
    """Stands where dispatch sees asyncio: its time passes by sleeping and by looking at it, and no test waits for it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.each_look = 0.0
        self.wakes_late = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    def get_running_loop(self) -> "Clock":
        return self

    def time(self) -> float:
        self.now += self.each_look
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds + self.wakes_late


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("placet.executor.dispatch.asyncio", made)
    return made


@dataclass
class Provider:
    """A connector that answers as it is told, the last answer for ever."""

    answers: Sequence[Done | Exception]
    replays: bool = True
    clock: Clock = field(default_factory=Clock)
    keys: list[str] = field(default_factory=list[str])
    begun: list[float] = field(default_factory=list[float])

    def replay_seconds(self, action: str) -> int | None:
        return 3600 if self.replays else None

    async def call(self, command: CanonicalCommand, key: str) -> Done:
        assert command is NOTE
        self.keys.append(key)
        self.begun.append(self.clock.now)
        answer = self.answers[min(len(self.keys), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def resolve(self, tenant: str, action: str, resource: str) -> Target | None:
        raise AssertionError("dispatch asks for no target")


async def run(provider: Provider, seconds: float = 60) -> Known:
    return await dispatch(provider, NOTE, "op_1", seconds=seconds, request_seconds=60)


@pytest.mark.req("E2")
@pytest.mark.parametrize("replays", [True, False])
async def test_what_succeeds_at_once_is_known_with_its_receipt(replays: bool) -> None:
    provider = Provider([DONE], replays)
    assert await run(provider) == Known("succeeded", 1, receipt="rcpt_1", result={"note_id": "note_1"})
    assert provider.keys == ["op_1"]


@pytest.mark.req("E2")
@pytest.mark.parametrize("replays", [True, False])
async def test_b35_what_was_not_sent_is_sent_again(replays: bool) -> None:
    provider = Provider([NotSent("refused"), NotSent("refused"), DONE], replays)
    assert await run(provider) == Known("succeeded", 3, receipt="rcpt_1", result={"note_id": "note_1"})


@pytest.mark.req("E2", "E3")
async def test_b36_an_ambiguous_answer_is_followed_by_the_same_request_with_the_same_key() -> None:
    provider = Provider([Ambiguous("cut"), Ambiguous("502"), DONE])
    assert (await run(provider)).attempts == 3
    assert provider.keys == ["op_1", "op_1", "op_1"]


@pytest.mark.req("E3", "E4")
@pytest.mark.parametrize("before", [0, 2])
async def test_b35_without_replay_an_ambiguous_answer_is_the_end_and_unknown(before: int) -> None:
    provider = Provider([*[NotSent("refused")] * before, Ambiguous("the answer was lost"), DONE], replays=False)
    assert await run(provider) == Known("unknown", before + 1, "the answer was lost")
    assert len(provider.keys) == before + 1


@pytest.mark.req("E4", "E5")
@pytest.mark.parametrize("replays", [True, False])
@pytest.mark.parametrize("before", [0, 1])
async def test_b35_what_the_provider_refuses_is_denied_and_not_asked_again(replays: bool, before: int) -> None:
    provider = Provider([*[NotSent("refused")] * before, Refused("precondition_failed")], replays)
    assert await run(provider) == Known("denied", before + 1, "precondition_failed")


async def outcome(provider: Provider, seconds: float) -> str:
    try:
        return (await run(provider, seconds)).outcome
    except Undecided:
        return "undecided"


@pytest.mark.req("E4")
async def test_b35_a_refusal_after_an_ambiguous_answer_does_not_say_that_nothing_was_done() -> None:
    provider = Provider([Ambiguous("the answer was lost"), Refused("the provider answered 401")])
    assert await outcome(provider, 5) in ("unknown", "undecided")


@pytest.mark.req("E2", "P7")
async def test_b33_a_process_that_wakes_up_late_begins_no_request_after_the_end(clock: Clock) -> None:
    clock.wakes_late = 5.0
    provider = Provider([NotSent("refused")], clock=clock)
    assert (await run(provider, 1)).outcome == "not_sent"
    assert provider.begun == [0.0]


@pytest.mark.req("E2", "E4")
async def test_b35_uncertain_to_the_end_is_undecided_while_a_repetition_is_harmless() -> None:
    provider = Provider([Ambiguous("the answer was lost")])
    with pytest.raises(Undecided, match="the answer was lost"):
        await run(provider, 5)
    assert set(provider.keys) == {"op_1"}


@pytest.mark.req("E4")
async def test_b35_uncertain_and_then_out_of_reach_is_undecided_too() -> None:
    with pytest.raises(Undecided, match="lost"):
        await run(Provider([Ambiguous("lost"), NotSent("refused")]), 5)


@pytest.mark.req("A8", "E4")
@pytest.mark.parametrize("replays", [True, False])
@pytest.mark.parametrize("seconds", [0.0, 5.0])
async def test_b35_a_provider_out_of_reach_to_the_end_was_sent_nothing(replays: bool, seconds: float) -> None:
    provider = Provider([NotSent("connection refused")], replays)
    known = await run(provider, seconds)
    assert (known.outcome, known.attempts) == ("not_sent", len(provider.keys))
    assert "connection refused" in known.reason


@pytest.mark.req("A8", "E4")
async def test_time_that_ends_between_two_looks_at_the_clock_makes_nothing_uncertain(clock: Clock) -> None:
    for tenths in range(1, 40):
        clock.each_look = tenths / 10
        provider = Provider([NotSent("connection refused")], replays=False)
        assert await outcome(provider, 5) == "not_sent", f"a look at the clock takes {clock.each_look} s"


@pytest.mark.req("E2", "A6")
@pytest.mark.parametrize("answer", [Ambiguous("the answer was lost"), NotSent("connection refused")])
async def test_no_request_begins_after_its_time(clock: Clock, answer: Exception) -> None:
    provider = Provider([answer], clock=clock)
    await outcome(provider, 5)
    assert len(provider.begun) > 3
    assert max(provider.begun) <= 5
