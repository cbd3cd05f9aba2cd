"""Waiting for a condition that has a name, instead of sleeping and hoping."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def wait_until(look: Callable[[], Awaitable[T | None]], description: str, *, within: float = 30.0) -> T:
    """The first truthy answer of `look`, asked again and again. Raises AssertionError with the description and the last
    answer when `within` seconds have passed; the time is generous because a busy machine must not make a test fail.
    """
    end = time.monotonic() + within
    while not (answer := await look()):
        if time.monotonic() > end:
            raise AssertionError(f"{within:.0f} s have passed without this: {description}; last seen: {answer!r}")
        await asyncio.sleep(0.02)
    return answer
