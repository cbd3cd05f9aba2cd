"""Identifiers: minted by the server, scoped to the tenant, ordered by time (UUIDv7, RFC 9562), readable by their prefix."""

import os
import secrets
import time
from typing import Annotated

from pydantic import StringConstraints

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
"""An identifier on the wire: ASCII, so that it has one form only (B27)."""


Subject = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,255}$")]
"""A principal's name as its issuer writes it: printable ASCII without spaces."""


def new_id(prefix: str) -> str:
    """A fresh identifier such as `turn_0190c6f3a1b27c3e8f00112233445566`: 48 bits of milliseconds, then 74 random ones."""
    random = int.from_bytes(os.urandom(10), "big")
    value = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | (random >> 68) << 64 | 0b10 << 62 | random & ((1 << 62) - 1)
    return f"{prefix}_{value:032x}"


def new_secret_id(prefix: str) -> str:
    """An identifier that nobody can guess (192 random bits): for what a person may answer (P2)."""
    return f"{prefix}_{secrets.token_hex(24)}"
