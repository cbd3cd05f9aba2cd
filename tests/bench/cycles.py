"""Cycles, so many at a time: what they cost whom, how fast they are, and how long a decision takes to its final answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any, TypeVar

from bench.contenders import Contender
from bench.floor.hops import Mode
from bench.machine import Cpu, Meter, used_between
from bench.watch import Watch

Json = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")

WARM_UP = 32
"""Cycles before those that count: plans are made, pools are open, code is loaded."""

SETTLE_SECONDS = 0.5
"""What a cycle leaves for later (outbox rows to delete, the read model) counts as its own."""


@dataclass
class Measured:
    """So many cycles. `cpu` is processor seconds, `idle` what idling would have cost meanwhile; latencies are seconds."""

    mode: Mode
    at_once: int
    cycles: int
    seconds: float = 0.0
    cpu: Cpu = field(default_factory=Cpu)
    idle: Cpu = field(default_factory=Cpu)
    latencies: list[float] = field(default_factory=list[float])

    def and_more(self, other: "Measured") -> "Measured":
        """These cycles and more of their kind."""
        total = self.cycles + other.cycles
        return Measured(self.mode, self.at_once, total, *self._sums(other), self.latencies + other.latencies)

    def then(self, second: "Measured") -> "Measured":
        """The first half of cycles, and the second half of the same ones, whose latencies count."""
        return Measured(self.mode, self.at_once, self.cycles, *self._sums(second), second.latencies)

    def _sums(self, other: "Measured") -> tuple[float, Cpu, Cpu]:
        return self.seconds + other.seconds, _sum(self.cpu, other.cpu), _sum(self.idle, other.idle)

    @property
    def rate(self) -> float:
        """Cycles per second."""
        return self.cycles / self.seconds

    def milliseconds(self, name: str, *, idling: bool = False) -> float:
        """Processor time per cycle of one party, with or without what idling would have cost it."""
        return (self.cpu[name] - self.idle[name] * (not idling)) / self.cycles * 1000

    def percentile(self, percent: int) -> float:
        """A latency in milliseconds."""
        return quantiles(self.latencies, n=100, method="inclusive")[percent - 1] * 1000


def _sum(some: Cpu, more: Cpu) -> Cpu:
    return {name: seconds + more[name] for name, seconds in some.items()}


class Course:
    """Runs cycles of one contender. `idle` is what its processes and the servers use per second when nothing happens."""

    def __init__(self, contender: Contender, watch: Watch, meter: Meter) -> None:
        self.contender, self.meter = contender, meter
        self._watch = watch
        self.idle: Cpu = {}

    @property
    def broker_version(self) -> str:
        """The version that the broker says it has."""
        return self._watch.broker_version

    async def warm_up(self) -> list[Json]:
        """Cycles that do not count; the cards of those that wait, for `warm_up_again`."""
        await spread(self._ungated, range(WARM_UP), WARM_UP)
        return await spread(self._suspend, range(WARM_UP), WARM_UP)

    async def warm_up_again(self, cards: Sequence[Json]) -> None:
        """The same in processes that have just been started."""
        await spread(self._resume, cards, WARM_UP)

    async def ungated(self, at_once: int, cycles: int) -> Measured:
        """From the turn to the final answer, which nobody has to allow."""
        measured, _ = await self._measured("ungated", at_once, self._ungated, range(cycles))
        return measured

    async def suspend(self, at_once: int, cycles: int) -> tuple[Measured, list[Json]]:
        """The first half of gated cycles, until each has its card; the cards."""
        return await self._measured("gated", at_once, self._suspend, range(cycles))

    async def resume(self, at_once: int, cards: Sequence[Json]) -> Measured:
        """The second half: from the decision to the final answer."""
        measured, _ = await self._measured("gated", at_once, self._resume, cards)
        return measured

    async def _ungated(self, _: int) -> None:
        await self._watch.end(await self.contender.ask("ungated"))

    async def _suspend(self, _: int) -> Json:
        return await self._watch.card(await self.contender.ask("gated"))

    async def _resume(self, card: Json) -> None:
        await self.contender.approve(card)
        await self._watch.end(card["turn_id"])

    async def _measured(
        self, mode: Mode, at_once: int, one: Callable[[T], Awaitable[R]], about: Sequence[T]
    ) -> tuple[Measured, list[R]]:
        latencies: list[float] = []

        async def timed(each: T) -> R:
            begun = time.monotonic()
            found = await one(each)
            latencies.append(time.monotonic() - begun)
            return found

        before, begun = self.meter.read(), time.monotonic()
        found = await spread(timed, about, at_once)
        seconds = time.monotonic() - begun
        await asyncio.sleep(SETTLE_SECONDS)
        used, elapsed = used_between(before, self.meter.read()), time.monotonic() - begun
        idle = {name: each * elapsed for name, each in self.idle.items()}
        return Measured(mode, at_once, len(about), seconds, used, idle, latencies), found


async def measure_idle(courses: Sequence[Course], seconds: float) -> None:
    """Let everything stand still for a while, and see what it costs."""
    await asyncio.sleep(SETTLE_SECONDS)
    before, begun = [course.meter.read() for course in courses], time.monotonic()
    await asyncio.sleep(seconds)
    for course, then in zip(courses, before, strict=True):
        used, elapsed = used_between(then, course.meter.read()), time.monotonic() - begun
        course.idle = {name: each / elapsed for name, each in used.items()}


async def spread(one: Callable[[T], Awaitable[R]], about: Sequence[T], at_once: int) -> list[R]:
    """Do `one` about each, so many at a time, each as soon as one before it is done."""
    waiting = iter(about)
    done: list[R] = []

    async def worker() -> None:
        for each in waiting:
            done.append(await one(each))

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())
    return done
