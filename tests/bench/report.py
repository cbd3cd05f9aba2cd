"""The figures as Markdown tables that can also be read as they are."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from bench.floor.hops import Mode
from bench.machine import SERVERS
from bench.trial import AT_ONCE, Trial
from placet.contracts.catalogue import SERVICES

PARTIES = (*SERVICES, *SERVERS)
"""Whose processor time makes up a cycle. The provider's does not: it stands for somebody else's system."""

MODES: tuple[Mode, ...] = ("gated", "ungated")


def as_text(about: dict[str, str], floor: Trial, ours: Trial) -> str:
    """Everything that was found."""
    where = [f"- {name}: {value}" for name, value in (_date() | about).items()]
    counts = ", ".join(f"{ours.of('gated', n).cycles} cycles at {n} at a time" for n in AT_ONCE)
    parts = [
        "# Cycles beside their floor",
        "\n".join([*where, f"- {counts}, gated and ungated each"]),
        "## CPU per cycle (ms, all processes, idle share subtracted)\n\n" + _cpu(floor, ours),
        "## Speed\n\n" + _speed(floor, ours),
        f"## Idle (ms of CPU per second)\n\n{_idle(floor, ours)}",
        f"## {ours.waiting} waiting approvals\n\n{_bytes(ours)}\n\n{_memory(ours)}",
    ]
    return "\n\n".join(parts) + "\n"


def as_json(about: dict[str, str], floor: Trial, ours: Trial) -> str:
    """The same for machines: seconds, bytes, and every latency."""
    return json.dumps(_date() | about | {trial.name: _figures(trial) for trial in (floor, ours)}, indent=1)


def _figures(trial: Trial) -> dict[str, Any]:
    return {
        "idle": trial.idle,
        "cycles": {name: asdict(found) for name, found in trial.measured.items()},
        "waiting": trial.waiting,
        "bytes_per_waiting": trial.bytes_per_waiting,
        "memory": trial.memory,
    }


def _date() -> dict[str, str]:
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


def _cpu(floor: Trial, ours: Trial) -> str:
    rows: list[list[str]] = []
    for mode in MODES:
        for at_once in AT_ONCE:
            own, bare = _per_cycle(ours, mode, at_once), _per_cycle(floor, mode, at_once)
            ratio = [a / b if b > 1 else None for a, b in zip(own, bare, strict=True)]
            rows.append([f"{mode} x{at_once}", "placet", *(f"{each:.1f}" for each in own)])
            rows.append(["", "floor", *(f"{each:.1f}" for each in bare)])
            rows.append(["", "ratio", *("-" if each is None else f"{each:.2f}" for each in ratio)])
    return _table(["", "", "in all", "(and idle)", *PARTIES, "(provider)"], rows)


def _per_cycle(trial: Trial, mode: Mode, at_once: int) -> list[float]:
    found = trial.of(mode, at_once)
    each = [found.milliseconds(name) for name in PARTIES]
    with_idle = sum(found.milliseconds(name, idling=True) for name in PARTIES)
    return [sum(each), with_idle, *each, found.milliseconds("provider")]


def _speed(floor: Trial, ours: Trial) -> str:
    rows = [
        [f"{mode} x{at_once}", trial.name, f"{found.rate:.1f}", f"{found.percentile(50):.0f}", f"{found.percentile(99):.0f}"]
        for mode in MODES
        for at_once in AT_ONCE
        for trial in (ours, floor)
        for found in (trial.of(mode, at_once),)
    ]
    note = "Latency is from the decision (ungated: from the turn) to the news of the final answer at a frontend's queue."
    return _table(["", "", "cycles/s", "p50 ms", "p99 ms"], rows) + "\n\n" + note


def _idle(floor: Trial, ours: Trial) -> str:
    rows = [[trial.name, *(f"{trial.idle[name] * 1000:.1f}" for name in PARTIES)] for trial in (ours, floor)]
    return _table(["", *PARTIES], rows)


def _bytes(ours: Trial) -> str:
    found = ours.bytes_per_waiting
    rows = [["bytes per approval", f"{sum(found.values()):.0f}", *(f"{each:.0f}" for each in found.values())]]
    return _table(["tables and indexes", "in all", *found], rows)


def _memory(ours: Trial) -> str:
    rows = [[when, *(f"{each[name] / 2**20:.1f}" for name in SERVICES)] for when, each in ours.memory.items()]
    return _table(["resident MiB", *SERVICES], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    rule = [("-" * width if column == 0 else "-" * (width - 1) + ":") for column, width in enumerate(map(_wide, widths))]
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(_aligned(line, list(map(_wide, widths)))) + " |" for line in lines)


def _wide(width: int) -> int:
    return max(3, width)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
