"""The demonstration: what Placet is for, shown with real processes that are really killed. Every claim is checked."""

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import httpx2

from placet.client import Client
from placet.contracts.catalogue import SERVICES
from placet.local.backing import Backing
from placet.local.issuer import APPROVER, ASKER
from placet.local.system import TESTS, System, system
from placet.testing import wait_until

sys.path.insert(0, str(TESTS))  # the demonstration's doubles of the outside world live with the tests

from fakes.otlp_receiver import OtlpReceiver, ReceivedLink, ReceivedSpan

TENANT = "acme"
Json = dict[str, Any]


class Told:
    """Prints what happens, and remembers whether every claim held."""

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


async def run_demo(backing: Backing) -> int:
    """Run the demonstration; 0 when everything held, else 1."""
    told = Told()
    print("Placet: an agent's dangerous calls wait for a person, with nothing held in memory, and then happen once.")
    told.step("Starting five services, each with its own login and nothing else: " + ", ".join(SERVICES))
    async with OtlpReceiver() as traces:
        settings = {"*": {"OTEL_EXPORTER_OTLP_ENDPOINT": traces.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100"}}
        async with system(backing, settings) as running, _people(running) as (alice, ann):
            stage = _Stage(told, running, traces, alice, ann)
            try:
                await stage.killed_in_the_middle()
                await stage.answer_lost()
                await stage.denied()
            except Exception as error:
                told.check(f"the demonstration comes to its end ({type(error).__name__}: {error})", False)
    return _end(told)


def _end(told: Told) -> int:
    if told.broken:
        told.step(f"{len(told.broken)} claims did not hold:")
        for claim in told.broken:
            told.say(claim)
        return 1
    told.step("Everything held.")
    told.say("`make up` keeps the system running and says where to look; `make test` proves far more than this.")
    told.say("README.md: a first action of your own in ten lines. services/*/README.md: a page for each service.")
    return 0


@asynccontextmanager
async def _people(running: System) -> AsyncGenerator[tuple[Client, Client]]:
    tokens = running.token("alice", TENANT, *ASKER), running.token("ann", TENANT, *APPROVER)
    async with Client(running.url, tokens[0]) as alice, Client(running.url, tokens[1]) as ann:
        yield alice, ann


class _Stage:
    """The three scenes."""

    def __init__(self, told: Told, running: System, traces: OtlpReceiver, alice: Client, ann: Client) -> None:
        self.told, self.running, self.traces, self.alice, self.ann = told, running, traces, alice, ann

    async def killed_in_the_middle(self) -> None:
        """A gated call waits; everything is killed; a second person approves; it happens once."""
        self.told.step("alice asks: “Please add a note to C-42”")
        turn = await self.alice.submit("Please add a note to C-42")
        view = await self._until(turn, "awaiting_approval", results=1)
        self._transcript(view)
        card = view["cards"][-1]["card"]
        self._card(card)
        await self._nothing_held()
        # Spans are sent a moment after they end: a service that is killed before that never sends them.
        await self.traces.wait_for(lambda spans: _asking(spans, card), "the span that suspends the turn", 15)
        await self._kill_everything()
        await self._approve_by_command_line(card)
        view = await self._until(turn, "completed")
        self._transcript(view)
        effects = await self._effects()
        receipt = json.loads(_results(view)[-1]["text"]).get("receipt")
        self.told.check(
            f"exactly one note at the provider, under the operation id, receipt {receipt}",
            [each["operation_key"] for each in effects] == [card["operation_id"]] and bool(receipt),
        )
        asked = (self.running.folder / "planner.log").read_text().count('"action": "model.asked"')
        self.told.check("the model was asked exactly twice: once before the wait, once after it", asked == 2)
        await self._linked_traces(card)

    async def answer_lost(self) -> None:
        """The provider does what it is asked and its answer is lost: asked again with the same key, one effect."""
        self.told.step("The same once more, but the provider's answer is lost on the way back")
        await self._provider("PUT", "faults", {"drop_responses": 1})
        before = len(await self._effects())
        turn = await self.alice.submit("Please add a note to C-42")
        card = (await self._until(turn, "awaiting_approval"))["cards"][-1]["card"]
        await self.ann.decide(card["interrupt_id"], "approve", card["digest"])
        await self._until(turn, "completed")
        sent = [each for each in await self._provider("GET", "requests") if each["operation_key"] == card["operation_id"]]
        self.told.say(f"the executor sent the same request {len(sent)} times, each with the key {card['operation_id']}")
        self.told.check("sent more than once, and one effect", len(sent) > 1 and len(await self._effects()) == before + 1)

    async def denied(self) -> None:
        """A person says no; a rule says no."""
        self.told.step("ann denies a deletion, and a rule denies an export")
        before = len(await self._effects())
        turn = await self.alice.submit("Please delete the note of C-42")
        card = (await self._until(turn, "awaiting_approval"))["cards"][-1]["card"]
        await self.ann.decide(card["interrupt_id"], "deny", card["digest"], comment="wrong customer")
        view = await self._until(turn, "completed")
        self.told.say(f"the model is told: {_results(view)[-1]['text']}")
        self.told.check("denied by ann, with her reason", "wrong customer" in _results(view)[-1]["text"])
        turn = await self.alice.submit("Please export all customers")
        view = await self._until(turn, "completed")
        self.told.say(f"the model is told: {_results(view)[-1]['text']}")
        self.told.check("denied by the rule, without a card", not view["cards"])
        self.told.check("nothing happened at the provider", len(await self._effects()) == before)

    def _transcript(self, view: Json) -> None:
        for message in view["messages"]:
            outcome = f" [{message['outcome']}]" if message["outcome"] else ""
            self.told.say(f"{message['role']:>9}{outcome}: {message['text'][:100]}")
            for call in message["tool_calls"]:
                self.told.say(f"{'':>9}  wants {call['action']} {call['arguments']}")
        self.told.say(f"the turn is {view['state']}")

    def _card(self, card: Json) -> None:
        self.told.step("The card that an approver sees")
        self.told.say(f"what      {card['summary']} ({card['action']}, risk {card['risk']})")
        self.told.say(
            f"to what   {card['resource']} at revision {card['expected_revision']}, now {json.dumps(card['current'])}"
        )
        self.told.say(f"with      {json.dumps(card['arguments'])}")
        self.told.say(f"asked by  {card['requested_by']}; rule {card['rule']}: a second person must answer")
        self.told.say(f"digest    {card['digest']}")
        self.told.say(f"expires   {card['expires_at']}")

    async def _nothing_held(self) -> None:
        connection = await asyncpg.connect(self.running.backing.postgres_url)
        try:
            query = "select count(*) from pg_stat_activity where usename like $1 and xact_start is not null"

            async def none_open() -> bool:
                return await connection.fetchval(query, f"{self.running.run.name}%") == 0

            await wait_until(none_open, "no transaction is open", within=10)
            self.told.check("while the turn waits, no database transaction is open", True)
        finally:
            await connection.close()

    async def _kill_everything(self) -> None:
        self.told.step("SIGKILL of all five services")
        self.running.kill()
        ended = {name: self.running.services[name].returncode for name in SERVICES}
        self.told.say(", ".join(f"{name} {status}" for name, status in ended.items()))
        self.told.check("every service is dead; only rows are left", set(ended.values()) == {-9})
        self.told.step("Starting them again, as if hours later")
        await self.running.start()

    async def _approve_by_command_line(self, card: Json) -> None:
        self.told.step(f"ann approves: placet approve {card['interrupt_id'][:12]}… --yes")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "placet.client", "approve", card["interrupt_id"], "--yes",
            env={"PATH": "/usr/bin:/bin", "PLACET_URL": self.running.url,
                 "PLACET_TOKEN": self.running.token("ann", TENANT, *APPROVER)},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
        for line in output.decode().strip().splitlines()[-2:]:
            self.told.say(line)
        self.told.check("approved by a second person through the command line", process.returncode == 0)

    async def _linked_traces(self, card: Json) -> None:
        self.told.step("The trace that resumed, and its link to the one that suspended")
        found = await self.traces.wait_for(lambda spans: _resumed(spans, card["turn_id"]), "the resumed trace", 15)
        assert found is not None
        resumed, link = found
        suspended = self.traces.trace(link.trace_id)
        self.told.say(f"resumed   {resumed.trace_id}: " + _names(self.traces.trace(resumed.trace_id)))
        self.told.say(f"suspended {link.trace_id}: " + _names(suspended))
        self.told.check(
            "a new trace begins at the decision, linked to the span that suspended the turn",
            resumed.trace_id != link.trace_id and link.span_id in {span.span_id for span in suspended},
        )

    async def _until(self, turn: Json, state: str, *, results: int = 0) -> Json:
        async def look() -> Json | None:
            view = await self.alice.conversation(turn["conversation_id"])
            return view if view["state"] == state and len(_results(view)) >= results else None

        return await wait_until(look, f"the turn is {state}")

    async def _effects(self) -> list[Json]:
        return await self._provider("GET", "effects")

    async def _provider(self, method: str, what: str, body: Json | None = None) -> Any:
        async with httpx2.AsyncClient(base_url=self.running.provider_url) as client:
            return (await client.request(method, f"/_control/{what}", json=body)).json()


def _results(view: Json) -> list[Json]:
    return [message for message in view["messages"] if message["role"] == "tool"]


def _asking(spans: Sequence[ReceivedSpan], card: Json) -> ReceivedSpan | None:
    """The span in which permission asked people."""
    asked = [span for span in spans if span.name == "process permission.asked.v1"]
    return next((span for span in asked if span.attributes.get("placet.operation.id") == card["operation_id"]), None)


def _resumed(spans: Sequence[ReceivedSpan], turn_id: str) -> tuple[ReceivedSpan, ReceivedLink] | None:
    """The root span that resumed the turn, with its link to the span that suspended it."""
    for span in spans:
        links = [link for link in span.links if link.attributes.get("placet.link") == "resumes"]
        if span.attributes.get("placet.turn.id") == turn_id and span.parent_id is None and links:
            return span, links[0]
    return None


def _names(spans: list[ReceivedSpan]) -> str:
    return " > ".join(re.sub(r"^process ", "", span.name) for span in spans)
