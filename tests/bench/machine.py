"""Servers of the benchmark's own, so that nobody else's load is measured, and the processor time of every process in it."""

import os
import platform
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import asyncpg
import psutil

from placet.local.backing import Backing
from placet.local.private import PrivatePostgres, PrivateRabbitMQ, PrivateRedis
from placet.local.private.server import PrivateServer
from placet.local.processes import Process

Cpu = dict[str, float]
"""Seconds of processor time, user and system, by whom."""

S = TypeVar("S", bound=PrivateServer)

SERVERS = ("PostgreSQL", "RabbitMQ", "Redis")


@dataclass(frozen=True)
class Machine:
    """Backing services that are only ours, and the processes of each."""

    backing: Backing
    servers: Mapping[str, Sequence[int]]


@contextmanager
def machine() -> Generator[Machine]:
    """A private PostgreSQL, RabbitMQ and Redis that sync to the disk, for the block. Raises BackingError."""
    with ExitStack() as stack:
        postgres, postgres_pids = _started(stack, PrivatePostgres)
        rabbitmq, rabbitmq_pids = _started(stack, PrivateRabbitMQ)
        redis, redis_pids = _started(stack, PrivateRedis)
        backing = Backing(rabbitmq.url, postgres.url, redis.url, rabbitmq.admin)
        yield Machine(backing, dict(zip(SERVERS, (postgres_pids, rabbitmq_pids, redis_pids), strict=True)))


def _started(stack: ExitStack, kind: type[S]) -> tuple[S, list[int]]:
    before = _children()
    server = stack.enter_context(kind.owned(durable=True))
    return server, sorted(_children() - before)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


class Meter:
    """Reads what everybody has used. Processes that have ended count with their parents, so no backend is missed."""

    def __init__(self, servers: Mapping[str, Sequence[int]], processes: Mapping[str, Process]) -> None:
        self._servers, self._processes = servers, processes

    def read(self) -> Cpu:
        """The processor time of each until now."""
        own = {name: _used(process.pid) for name, process in self._processes.items()}
        return own | {name: sum(map(_used, pids)) for name, pids in self._servers.items()}


def used_between(before: Cpu, after: Cpu) -> Cpu:
    """What each has used between two readings."""
    return {name: after[name] - before[name] for name in after}


def _used(pid: int) -> float:
    seconds = 0.0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                seconds += sum(process.cpu_times()[:4])  # user, system, and both of the children that have ended
    return seconds


async def described(backing: Backing, rabbitmq_version: str) -> dict[str, str]:
    """The class of this machine, and the versions that were measured."""
    postgres = await asyncpg.connect(backing.postgres_url)
    try:
        version = str(await postgres.fetchval("show server_version"))
    finally:
        await postgres.close()
    memory = psutil.virtual_memory().total / 2**30
    return {
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {_cpu_model()}",
        "load before": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "Python": platform.python_version(),
        "PostgreSQL": version,
        "RabbitMQ": rabbitmq_version,
    }


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
