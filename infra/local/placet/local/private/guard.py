"""Ends processes with everything they started, and removes their directory, when the launcher is gone.

The launcher runs this file with its own Python and holds the other end of standard input. However the launcher ends,
SIGKILL included, the pipe ends with it. Standard library only, because it is started by path.

Lines read: `+PID SIGNAL` (watch a process; SIGNAL is its quickest orderly end) and `-PID` (it has ended).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ORDERLY = 2.0
"""Seconds that a process may take to end in order before it is killed."""

STILL = 10.0
"""Seconds that a process may take to stop; whoever ends it goes on all the same."""


def family(leader: int) -> set[int]:
    """`leader`, everything in its process group and all their descendants that are alive."""
    processes = alive()
    found = {pid for pid, (_, group) in processes.items() if leader in (pid, group)}
    while more := {pid for pid, (parent, _) in processes.items() if parent in found} - found:
        found |= more
    return found


def signal_family(leader: int, number: int) -> set[int]:
    """Send a signal to the whole family and say who it was.

    Not to the process group alone: PostgreSQL gives each of its children a group of its own.
    """
    # The leader is stopped first, so that it starts nobody between the count and the signal.
    _send(leader, signal.SIGSTOP)
    _until_still(leader)
    members = family(leader)
    for pid in members:
        _send(pid, number)
    return members


def stop_family(leader: int) -> None:
    """Stop the whole family; return when nobody of it runs: on a busy machine a signal takes its time.

    Raises TimeoutError when somebody goes on.
    """
    for pid in signal_family(leader, signal.SIGSTOP):
        if not _until_still(pid):
            raise TimeoutError(f"process {pid} was told to stop and goes on: {states(pid)}")


def kill_family(leader: int) -> None:
    """Kill the whole family; return when nobody of it is alive."""
    members = signal_family(leader, signal.SIGKILL)
    while members & alive().keys():
        time.sleep(0.01)


def end_family(leader: int, orderly: int) -> None:
    """Ask the leader to end by the signal `orderly`, then kill who is left."""
    if orderly == signal.SIGKILL:
        kill_family(leader)
        return
    members = signal_family(leader, signal.SIGCONT)
    _send(leader, orderly)
    end = time.monotonic() + ORDERLY
    while members & alive().keys() and time.monotonic() < end:
        time.sleep(0.01)
    for pid in members & alive().keys():
        kill_family(pid)


def alive() -> dict[int, tuple[int, int]]:
    """The processes that have not ended, each with its parent and its group."""
    lines = _lines_of_proc() if Path("/proc/self/stat").exists() else _lines_of_ps()
    rows = (line.split()[:4] for line in lines)
    return {int(pid): (int(parent), int(group)) for pid, state, parent, group in rows if not state.startswith(("Z", "X"))}


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _until_still(pid: int) -> bool:
    """Wait until a process that was told to stop runs no more, or is gone; whether it is so within STILL seconds.

    The first of its threads that hears of it stops all the others; one that the kernel holds (D) stops as it comes back.
    """
    end = time.monotonic() + STILL
    while not (still := bool((found := states(pid)) & set("TtZX")) or found <= {"D"}) and time.monotonic() < end:
        time.sleep(0.001)
    return still


def states(pid: int) -> set[str]:
    """What the threads of a process do, in the letters of ps(1); none when it is gone."""
    if not Path("/proc/self/stat").exists():
        shown = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], stdout=subprocess.PIPE, text=True).stdout
        return set(shown.strip()[:1])
    found: set[str] = set()
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            found.add(stat.read_text(errors="replace").rpartition(")")[2].split()[0])
    return found


def _lines_of_proc() -> list[str]:
    lines: list[str] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name in parentheses may itself hold spaces and parentheses.
            lines.append(f"{stat.parent.name} {stat.read_text(errors='replace').rpartition(')')[2]}")
    return lines


def _lines_of_ps() -> list[str]:
    return subprocess.run(["ps", "-axo", "pid=,state=,ppid=,pgid="], stdout=subprocess.PIPE, text=True).stdout.splitlines()


def main(directory: str) -> None:
    """Watch until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[int, int] = {}
    for line in sys.stdin:
        pid, *orderly = line[1:].split()
        if line.startswith("+"):
            watched[int(pid)] = int(orderly[0])
        else:
            watched.pop(int(pid), None)
    for pid, number in reversed(watched.items()):
        end_family(pid, number)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
