"""Waiting for an event, and no longer than one may."""

import asyncio


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event is set, or will be within so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
