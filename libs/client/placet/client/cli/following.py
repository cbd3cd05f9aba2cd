"""Following a turn to its end, over as many connections as it takes."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2

from placet.client.api import Client, Event, Refused
from placet.client.cli.options import print_json
from placet.client.cli.transcript import Narrator, ends

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds before a broken connection is made again; doubled each time."""

AWAY = frozenset({502, 503, 504})
"""What is answered, also by others in front of Placet, while it or a part of it is away for a moment."""


async def follow(client: Client, conversation_id: str) -> AsyncGenerator[Event]:
    """The events of a conversation from its beginning, then live; never ends. A broken connection is made again, behind
    the last event, and again while Placet is away. Raises Refused for what waiting does not mend."""
    after, pause = 0, FIRST_PAUSE
    while True:
        wanted = 0.0
        try:
            async with aclosing(client.events(conversation_id, after=after)) as events:
                async for event in events:
                    after, pause = event.id, FIRST_PAUSE
                    yield event
        except httpx2.TransportError:
            pass
        except Refused as refused:
            if refused.status not in AWAY:
                raise
            wanted = refused.retry_after
        print(f"The connection broke; going on behind event {after}. Ctrl-C leaves.", file=sys.stderr)
        await asyncio.sleep(max(pause, wanted))
        pause = min(2 * pause, LONGEST_PAUSE)


async def tell(client: Client, conversation_id: str, turn_id: str, *, alone: bool, as_json: bool) -> None:
    """Print what happens until the turn ends; `alone` leaves the conversation's other turns out. Raises Refused."""
    narrator = Narrator()
    async with aclosing(follow(client, conversation_id)) as events:
        async for event in events:
            if alone and event.data.get("turn_id") != turn_id:
                continue
            if as_json:
                print_json({"id": event.id, "type": event.type, "data": event.data}, indent=None)
            for line in () if as_json else narrator.event(event):
                print(line, flush=True)
            if ends(event, turn_id):
                return
