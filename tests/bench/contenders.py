"""What is measured: the five services as they are, and the floor under them. Both are driven in the same way."""

import asyncio
import json
import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

import asyncpg
import httpx2

from bench.floor.hops import Mode
from bench.floor.service import TABLE
from bench.watch import Watch
from placet.client import Client
from placet.contracts.catalogue import SERVICES
from placet.contracts.examples import golden
from placet.contracts.ids import new_id
from placet.local.issuer import APPROVER, ASKER
from placet.local.processes import Process
from placet.local.run import DATABASES
from placet.local.system import System
from world import create, read, script

Json = dict[str, Any]

FLOOR = Path(__file__).parent / "floor"


class Contender(ABC):
    """Five processes that carry cycles, and how a driver asks and approves."""

    name: ClassVar[str]

    def __init__(self, system: System, watch: Watch, open_until: AsyncExitStack) -> None:
        self.system, self._watch, self._open_until = system, watch, open_until
        self._tenant = f"bench-{secrets.token_hex(4)}"

    async def prepare(self) -> None:
        """What must be there before the first start."""
        return

    @abstractmethod
    async def start(self) -> None:
        """Start five fresh processes, and return when they are ready."""

    async def restart(self) -> None:
        """Stop the five, and start others that know nothing but what is durable."""
        await self.system.stop()
        await self.start()

    @abstractmethod
    async def ask(self, mode: Mode) -> str:
        """Begin a cycle; the turn's id."""

    @abstractmethod
    async def approve(self, card: Json) -> None:
        """Decide a card, as another person."""


class Placet(Contender):
    """The product, over HTTP as its users have it."""

    name = "placet"

    async def start(self) -> None:
        await self.system.start()
        self._alice = await self._person("alice", *ASKER)
        self._ann = await self._person("ann", *APPROVER)

    async def _person(self, name: str, *scopes: str) -> Client:
        client = Client(self.system.url, self.system.token(name, self._tenant, *scopes), timeout=60)
        return await self._open_until.enter_async_context(client)

    async def ask(self, mode: Mode) -> str:
        customer = f"C-{secrets.token_hex(8)}"  # one of its own: an approval of one note must not outdate another
        call = create("A note of the benchmark.", customer) if mode == "gated" else read(customer)
        text, key = script([call], "It is done."), secrets.token_hex(16)
        turn = await _again(lambda: self._alice.submit(text, key=key))
        return turn["turn_id"]

    async def approve(self, card: Json) -> None:
        await _again(lambda: self._ann.decide(card["interrupt_id"], "approve", card["digest"]))


async def _again(request: Callable[[], Awaitable[Json]]) -> Json:
    """Send a request once more when the server has just closed the connection that it was to go over."""
    try:
        return await request()
    except httpx2.TransportError:
        return await request()


class Floor(Contender):
    """The same durable hops, bare (floor/hops.py says which)."""

    name = "floor"

    async def prepare(self) -> None:
        for service in DATABASES:
            connection = await asyncpg.connect(self.system.database_url(service, owner=True))
            try:
                await connection.execute(TABLE)
                await connection.execute(f'grant select, insert on floor_row to "{self.system.run.database(service)}"')
            finally:
                await connection.close()

    async def start(self) -> None:
        sizes = {"FLOOR_SIZES": json.dumps({name.removesuffix(".json"): len(body) for name, body in golden().items()})}
        for name in SERVICES:
            command = [sys.executable, str(FLOOR), name]
            log = self.system.folder / f"floor-{name}.log"
            self.system.services[name] = Process(name, command, self.system.environment(name) | sizes, log)
        await asyncio.gather(*(process.said("service.started") for process in self.system.services.values()))

    async def ask(self, mode: Mode) -> str:
        turn_id = new_id("turn")
        about = {"turn_id": turn_id, "mode": mode, "state": "accepted"}
        await self._watch.say("frontend", "turn.requested.v1", {"data": about})
        return turn_id

    async def approve(self, card: Json) -> None:
        await self._watch.say("approver", "decision.submitted.v1", {"data": card})
