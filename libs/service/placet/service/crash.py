"""Named places where a test may kill the process for real:
`PLACET_CRASH_AT=admission:permission.decided.v1@acme:after_commit.decide`.

One function, no state but the environment read at start, no cost when it is not set.
"""

import os
from contextvars import ContextVar

CRASHED = 70
"""Exit status of a process that died at its named place."""

_crash_at = os.environ.get("PLACET_CRASH_AT")
_handling: ContextVar[str] = ContextVar("handling", default="")


def handling(place: str, tenant: str) -> None:
    """Name what this task works on, `<service>:<message type>`, and for whom: one tenant's crash is no other's."""
    if _crash_at:
        _handling.set(f"{place}@{tenant}")


def crash_point(moment: str, about: str = "") -> None:
    """Die here, as if killed, when the environment names this place and moment (and what it is about, after a dot)."""
    if _crash_at and _crash_at == f"{_handling.get()}:{moment}{'.' * bool(about)}{about}":
        os._exit(CRASHED)
