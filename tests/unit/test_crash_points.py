"""A crash point kills the process at its own place and moment, and nowhere else."""

import os
import subprocess
import sys

import pytest

from placet.service.crash import CRASHED

PROGRAM = """
import asyncio, sys
from placet.service.crash import crash_point, handling

async def work(place):
    handling(*place.split("@"))
    await asyncio.sleep(0)
    try:
        crash_point("after_commit")
        print(place, "survived", flush=True)
    finally:
        print(place, "left", flush=True)

async def main():
    crash_point("after_commit")
    for place in sys.argv[1:]:
        await asyncio.create_task(work(place))
    await asyncio.gather(*(work(place) for place in sys.argv[1:]))

asyncio.run(main())
"""


def run(crash_at: str | None, *places: str) -> tuple[int, list[str]]:
    """How a program that works at these places ends, and what it said before."""
    environment = {name: value for name, value in os.environ.items() if name != "PLACET_CRASH_AT"}
    if crash_at is not None:
        environment["PLACET_CRASH_AT"] = crash_at
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *places], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stdout.splitlines()


@pytest.mark.req("F")
def test_the_process_dies_at_the_named_place_without_a_last_word() -> None:
    status, said = run(
        "admission:permission.decided.v1@acme:after_commit",
        "admission:other.v1@acme",
        "admission:permission.decided.v1@globex",
        "admission:permission.decided.v1@acme",
    )
    survivors = ("admission:other.v1@acme", "admission:permission.decided.v1@globex")
    assert (status, said) == (CRASHED, [f"{place} {what}" for place in survivors for what in ("survived", "left")])
    assert CRASHED == 70


@pytest.mark.req("F")
@pytest.mark.parametrize(
    "crash_at",
    [
        None,
        "",
        "after_commit",
        ":after_commi",
        "admission:permission.decided.v1@acme",
        "admission:permission.decided.v1:after_commit",
        "admission:permission.decided.v1@acme:before_commit",
        "planner:permission.decided.v1@acme:after_commit",
        "admission:permission.decided.v1@acme:after_commit ",
    ],
)
def test_the_process_lives_everywhere_else(crash_at: str | None) -> None:
    status, said = run(crash_at, "admission:permission.decided.v1@acme")
    assert (status, len(said)) == (0, 4)


@pytest.mark.req("F")
def test_what_works_on_nothing_named_dies_at_the_nameless_place() -> None:
    assert run(":after_commit", "admission:other.v1@acme") == (CRASHED, [])
