"""What the demonstration tells: what happens, and of each claim whether it held."""

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from placet.testing import wait_until

Json = dict[str, Any]


class Told:
    """Prints what happens, and remembers which claims did not hold."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self._began = time.monotonic()

    def step(self, title: str) -> None:
        """A new chapter."""
        print(f"\n[{time.monotonic() - self._began:5.1f} s] {title}", flush=True)

    def say(self, text: str) -> None:
        """One line of it."""
        print(f"    {text}", flush=True)

    def check(self, claim: str, holds: bool) -> None:
        """A claim of Placet's, and whether it held just now."""
        print(f"    {'✓' if holds else '✗ THIS DID NOT HOLD:'} {claim}", flush=True)
        if not holds:
            self.broken.append(claim)

    async def check_soon(self, claim: str, look: Callable[[], Awaitable[bool]], *, within: float = 20.0) -> None:
        """A claim that may take a moment to hold."""
        try:
            await wait_until(look, claim, within=within)
        except AssertionError:
            self.check(claim, False)
        else:
            self.check(claim, True)

    def transcript(self, view: Json) -> None:
        """What was said in a conversation, and how it stands."""
        for message in view["messages"]:
            outcome = f" [{message['outcome']}]" if message["outcome"] else ""
            self.say(f"{message['role']:>9}{outcome}: {message['text'][:100]}")
            for call in message["tool_calls"]:
                self.say(f"{'':>9}  wants {call['action']} {call['arguments']}")
        self.say(f"the turn is {view['state']}")

    def card(self, card: Json) -> None:
        """The question as an approver sees it."""
        self.step("The card that an approver sees")
        self.say(f"what      {card['summary']} ({card['action']}, risk {card['risk']})")
        self.say(f"to what   {card['resource']} at revision {card['expected_revision']}, now {json.dumps(card['current'])}")
        self.say(f"with      {json.dumps(card['arguments'])}")
        who = "a second person" if card["second_person"] else "an approver"
        self.say(f"asked by  {card['requested_by']}; rule {card['rule']}: {who} must answer")
        self.say(f"digest    {card['digest']}")
        self.say(f"expires   {card['expires_at']}")

    def end(self) -> int:
        """Say how it ended; 0 when everything held, else 1."""
        if self.broken:
            self.step(f"{len(self.broken)} {'claim' if len(self.broken) == 1 else 'claims'} did not hold:")
            for claim in self.broken:
                self.say(claim)
            return 1
        self.step("Everything held.")
        self.say("`make up` keeps the system running and says where to look; `make test` proves far more than this.")
        self.say("README.md: a first action of your own in ten lines. services/*/README.md: a page for each service.")
        return 0
