"""Both contenders through the same course, turn and turn about, so that a busy moment of the machine hits both."""

import sys
from collections import ChainMap
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.contenders import Contender, Floor, Placet
from bench.cycles import WARM_UP, Course, Measured, measure_idle
from bench.floor.hops import Mode
from bench.machine import Cpu, Machine, Meter, described
from bench.sink import sink
from bench.storage import database_bytes, memory, per_item
from bench.watch import Watch
from placet.local.system import System
from placet.local.system import system as run_system

Json = dict[str, Any]

IDLE_SECONDS = 5.0
AT_ONCE = (1, 32)
ROUNDS = 4
"""Into so many parts the cycles are cut, each contender doing one in turn."""


@dataclass
class Trial:
    """One contender, and what it showed."""

    course: Course
    measured: dict[str, Measured] = field(default_factory=dict[str, Measured])
    waiting: int = 0
    bytes_per_waiting: dict[str, float] = field(default_factory=dict[str, float])
    memory: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    _suspended: list[tuple[Measured, list[Json]]] = field(default_factory=list[tuple[Measured, list[Json]]])

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.course.contender.name

    @property
    def idle(self) -> Cpu:
        """Processor seconds per second without work."""
        return self.course.idle

    @property
    def system(self) -> System:
        """Where its processes are."""
        return self.course.contender.system

    def of(self, mode: Mode, at_once: int) -> Measured:
        """What was measured of one kind of cycle."""
        return self.measured[f"{mode} x{at_once}"]

    def remember(self, when: str) -> None:
        """Keep what memory each service has now."""
        self.memory[when] = memory(self.system)

    async def ungated(self, at_once: int, cycles: int) -> None:
        """A round of ungated cycles."""
        self._add(await self.course.ungated(at_once, cycles))

    async def suspend(self, at_once: int, cycles: int) -> None:
        """A round of first halves."""
        self._suspended.append(await self.course.suspend(at_once, cycles))
        self.waiting += cycles

    async def resume(self, number: int) -> None:
        """The second halves of a round."""
        first, cards = self._suspended[number]
        self._add(first.then(await self.course.resume(first.at_once, cards)))

    def _add(self, found: Measured) -> None:
        name = f"{found.mode} x{found.at_once}"
        self.measured[name] = self.measured[name].and_more(found) if name in self.measured else found


async def run_trials(machine: Machine, cycles: dict[int, int]) -> tuple[dict[str, str], Trial, Trial]:
    """Everything at each concurrency: where, the floor, and Placet. Raises AssertionError when a cycle does not end well."""
    async with AsyncExitStack() as stack:
        traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": await stack.enter_async_context(sink())}
        floor = Trial(await stack.enter_async_context(course_of(Floor, machine)))
        ours = Trial(await stack.enter_async_context(course_of(Placet, machine, traces)))
        about = await described(machine.backing, ours.course.broker_version)
        await _run((floor, ours), cycles)
        return about, floor, ours


@asynccontextmanager
async def course_of(
    kind: type[Contender], machine: Machine, settings: dict[str, str] | None = None
) -> AsyncGenerator[Course]:
    """A contender that has started, on these servers, for the block; its last words if it does not end well."""
    async with AsyncExitStack() as stack:
        system = await stack.enter_async_context(run_system(machine.backing, {"*": settings or {}}, start=False))
        watch = await stack.enter_async_context(Watch(system))
        contender = kind(system, watch, stack)
        await contender.prepare()
        await contender.start()
        meter = Meter(machine.servers, ChainMap(system.services, {"provider": system.provider}))
        try:
            yield Course(contender, watch, meter)
        except BaseException:
            _say_last_words(system)
            raise


def _say_last_words(system: System) -> None:
    for name, process in system.services.items():
        print(f"--- {name} ({process.returncode})\n{process.tail()}", file=sys.stderr)


async def _run(trials: Sequence[Trial], cycles: dict[int, int]) -> None:
    for trial in trials:
        trial.remember("fresh, none waits")
    warm = [await trial.course.warm_up() for trial in trials]
    await measure_idle([trial.course for trial in trials], IDLE_SECONDS)
    for at_once in AT_ONCE:
        for _ in range(ROUNDS):
            for trial in trials:
                await trial.ungated(at_once, cycles[at_once] // ROUNDS)
    await _fill(trials, cycles)
    for trial, cards in zip(trials, warm, strict=True):
        await trial.course.contender.restart()
        trial.remember("fresh, all wait")
        await trial.course.warm_up_again(cards)
    for number in range(ROUNDS * len(AT_ONCE)):
        for trial in trials:
            await trial.resume(number)


async def _fill(trials: Sequence[Trial], cycles: dict[int, int]) -> None:
    before = [await database_bytes(trial.system) for trial in trials]
    for trial in trials:
        trial.remember(f"after work, {WARM_UP} wait")
    for at_once in AT_ONCE:
        for _ in range(ROUNDS):
            for trial in trials:
                await trial.suspend(at_once, cycles[at_once] // ROUNDS)
    for trial, then in zip(trials, before, strict=True):
        trial.remember("after work, all wait")
        trial.bytes_per_waiting = per_item(then, await database_bytes(trial.system), trial.waiting)
