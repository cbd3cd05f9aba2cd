"""Looks at queues, which go on as long as a service lives: they leave nothing behind."""

import asyncio
import gc

import pytest

from placet.contracts.catalogue import inbox_queue
from stations import Station


def futures() -> int:
    """How many futures there are."""
    gc.collect()
    return sum(isinstance(each, asyncio.Future) for each in gc.get_objects())


@pytest.mark.req("T1", "M5")
async def test_b41_to_look_at_a_queue_again_and_again_keeps_nothing(station: Station) -> None:
    publisher = await station.publisher("planner")
    await publisher.passive(inbox_queue("planner"))
    before = futures()
    for _ in range(100):
        await publisher.passive(inbox_queue("planner"))
    assert futures() < before + 50
