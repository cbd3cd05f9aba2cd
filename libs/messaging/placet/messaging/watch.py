"""A consumer that the broker has dropped without a word hears nothing, and does not know it (B41)."""

import asyncio
from collections.abc import Sequence

from aiormq.exceptions import AMQPError

from placet.messaging.publisher import Publisher

EVERY_SECONDS = 2
LOOKS = 3
"""How often in a row a queue may have no consumer: one that has lost its connection comes back."""


class Deaf(Exception):
    """A queue has lost its consumers for good."""


async def watch_consumers(queues: Sequence[str], publisher: Publisher) -> None:
    """Look at the queues for ever. Raises Deaf when one has no consumer any more, so that the service starts afresh.

    The broker says how many consumers there are, not whose they are: of several instances one may stay deaf unseen.
    """
    missing = dict.fromkeys(queues, 0)
    while max(missing.values()) < LOOKS:
        await asyncio.sleep(EVERY_SECONDS)
        for queue in queues:
            missing[queue] = 0 if await _consumed(queue, publisher) else missing[queue] + 1
    raise Deaf(f"{max(missing, key=missing.__getitem__)} has no consumer")


async def _consumed(queue: str, publisher: Publisher) -> bool:
    try:
        found = await publisher.passive(queue)
    except (AMQPError, RuntimeError, OSError, TimeoutError) as error:
        return "NOT_FOUND" not in str(error)  # a broker that is away is waited for; a queue that is gone is not
    return bool(found.consumer_count)
