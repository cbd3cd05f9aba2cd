"""What lies in a queue: the next message of a kind, and how many there are of each. What is looked at is taken out."""

import json
from collections import Counter
from typing import Any

from aio_pika.abc import AbstractQueue

from placet.testing import wait_until

Json = dict[str, Any]


async def heard(queue: AbstractQueue, wire: str, **about: Any) -> Json:
    """What the next such message in a queue says, once it is there; what comes before it is passed over."""

    async def look() -> Json | None:
        while (message := await queue.get(no_ack=True, fail=False)) is not None:
            event = json.loads(message.body)
            if event["type"] == wire and about.items() <= event["data"].items():
                return event["data"]
        return None

    return await wait_until(look, f"{wire} is heard")


async def counted(queue: AbstractQueue, turn: Json) -> Counter[str]:
    """How many messages of each kind a queue has about a turn; one that was delivered again counts once."""
    kinds: dict[str, str] = {}
    while (message := await queue.get(no_ack=True, fail=False)) is not None:
        event = json.loads(message.body)
        if event["data"].get("turn_id") == turn["turn_id"]:
            kinds[event["id"]] = event["type"]
    return Counter(kinds.values())
