"""The demonstration: what Placet is for, shown with real processes that are really killed. Every claim is checked."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from placet.client import Client
from placet.contracts.catalogue import SERVICES
from placet.local.backing import Backing
from placet.local.held import left_in_queues, no_delivery, no_transaction
from placet.local.issuer import APPROVER, ASKER
from placet.local.system import TESTS, System, system
from placet.local.told import Json, Told
from placet.testing import wait_until

sys.path.insert(0, str(TESTS))  # the demonstration's doubles of the outside world live with the tests

from fakes.otlp_receiver import OtlpReceiver
from fakes.traces import asking, names, resumed

TENANT = "acme"


async def run_demo(backing: Backing, settings: Mapping[str, Mapping[str, str]] | None = None) -> int:
    """Run the demonstration; 0 when everything held, else 1. `settings` are more settings by service."""
    told = Told()
    print("Placet: an agent's dangerous calls wait for a person, with nothing held in memory, and then happen once.")
    told.step("Starting five services, each with its own login and nothing else: " + ", ".join(SERVICES))
    async with OtlpReceiver() as traces:
        exports = {"*": {"OTEL_EXPORTER_OTLP_ENDPOINT": traces.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100"}}
        async with system(backing, exports | dict(settings or {})) as running, _people(running) as (alice, ann):
            stage = _Stage(told, running, traces, alice, ann)
            try:
                await stage.killed_in_the_middle()
                await stage.answer_lost()
                await stage.denied()
            except Exception as error:
                told.check(f"the demonstration comes to its end ({type(error).__name__}: {error})", False)
    return told.end()


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
        view = await self._waiting(turn, results=1)
        self.told.transcript(view)
        card = view["cards"][-1]["card"]
        self.told.card(card)
        await self._nothing_held()
        # Spans are sent a moment after they end: a service that is killed before that never sends them.
        await self.traces.wait_for(lambda spans: asking(spans, card["operation_id"]), "the span that suspends the turn", 15)
        await self._kill_everything()
        await self._approve_by_command_line(card)
        view = await self._ended(turn)
        self.told.transcript(view)
        self.told.check("the card says that ann approved", _decided(view) == ("approved", "ann"))
        receipt = json.loads(_result(view)["text"]).get("receipt")
        self.told.check(
            f"exactly one note at the provider, under the operation id, receipt {receipt}",
            await self._effects() == [card["operation_id"]] and bool(receipt),
        )
        asked = (self.running.folder / "planner.log").read_text().count('"action": "model.asked"')
        self.told.check("the model was asked exactly twice: once before the wait, once after it", asked == 2)
        await self._linked_traces(card)

    async def answer_lost(self) -> None:
        """The provider does what it is asked and its answer is lost: asked again with the same key, one effect."""
        self.told.step("The same once more, but the provider's answer is lost on the way back")
        await self._provider("PUT", "faults", {"drop_responses": 1})
        effects, requests = await self._effects(), await self._requests()
        turn = await self.alice.submit("Please add a note to C-42")
        card = (await self._waiting(turn))["cards"][-1]["card"]
        await self.ann.decide(card["interrupt_id"], "approve", card["digest"])
        view = await self._ended(turn)
        sent = [each["operation_key"] for each in (await self._requests())[len(requests) :] if each["method"] != "GET"]
        self.told.say(
            f"the executor sent its request {len(sent)} times, with the key {' and '.join(sorted(map(str, {*sent})))}"
        )
        self.told.check(
            "sent more than once, always with the same key", sent[1:] != [] and {*sent} == {card["operation_id"]}
        )
        self.told.check("one effect", await self._effects() == [*effects, card["operation_id"]])
        self.told.check("the model is told that it succeeded", _result(view)["outcome"] == "succeeded")

    async def denied(self) -> None:
        """A person says no; a rule says no."""
        self.told.step("ann denies a deletion, and a rule denies an export")
        effects, requests = await self._effects(), await self._requests()
        turn = await self.alice.submit("Please delete the note of C-42")
        card = (await self._waiting(turn))["cards"][-1]["card"]
        await self.ann.decide(card["interrupt_id"], "deny", card["digest"], comment="wrong customer")
        view = await self._ended(turn)
        self._denied("denied by ann, with her reason", view, _decided(view) == ("denied", "ann"), "wrong customer")
        turn = await self.alice.submit("Please export all customers")
        view = await self._ended(turn)
        self._denied("denied by the rule, without a card", view, not view["cards"], "never allowed")
        asked = [f"{each['method']} {each['path']}" for each in (await self._requests())[len(requests) :]]
        wrong = [line for line in asked if not line.startswith("GET ") or line.endswith("/export")]
        self.told.check("the provider was asked neither to delete nor to export", not wrong)
        self.told.check("nothing happened at the provider", await self._effects() == effects)

    def _denied(self, claim: str, view: Json, rightly: bool, reason: str) -> None:
        result = _result(view)
        self.told.say(f"the model is told: {result['text']}")
        self.told.check(claim, rightly and result["outcome"] == "denied" and reason in result["text"])

    async def _nothing_held(self) -> None:
        waits = "while the turn waits, "
        await self.told.check_soon(waits + "no database transaction is open", lambda: no_transaction(self.running))
        await self.told.check_soon(waits + "no delivery is unacknowledged", lambda: no_delivery(self.running))

    async def _kill_everything(self) -> None:
        self.told.step("SIGKILL of all five services")
        self.running.kill()
        ended = {name: self.running.services[name].returncode for name in SERVICES}
        self.told.say(", ".join(f"{name} {status}" for name, status in ended.items()))
        self.told.check("every service is dead", {*ended.values()} == {-signal.SIGKILL})
        left = await left_in_queues(self.running)
        self.told.check(f"no message waits for them{f' ({left})' if left else ''}: only rows are left", not left)
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
        found = await self.traces.wait_for(lambda spans: resumed(spans, card["turn_id"]), "the resumed trace", 15)
        suspending = asking(self.traces.spans, card["operation_id"])
        assert found is not None
        assert suspending is not None
        root, link = found
        self.told.say(f"resumed   {root.trace_id}: " + names(self.traces.trace(root.trace_id)))
        self.told.say(f"suspended {link.trace_id}: " + names(self.traces.trace(link.trace_id)))
        self.told.check(
            "a new trace begins at the decision, linked to the span that suspended the turn",
            root.trace_id != link.trace_id and (link.trace_id, link.span_id) == (suspending.trace_id, suspending.span_id),
        )

    async def _waiting(self, turn: Json, *, results: int = 0) -> Json:
        """The conversation once its turn waits for a person, and the model has so many results."""
        return await self._until(turn, "awaiting_approval", lambda view: len(_results(view)) >= results)

    async def _ended(self, turn: Json) -> Json:
        """The conversation once its turn is completed, and its cards are closed: that news comes by another way."""
        return await self._until(turn, "completed", lambda view: all(card["state"] != "pending" for card in view["cards"]))

    async def _until(self, turn: Json, state: str, and_so: Callable[[Json], bool]) -> Json:
        async def look() -> Json | None:
            view = await self.alice.conversation(turn["conversation_id"])
            return view if view["state"] == state and and_so(view) else None

        return await wait_until(look, f"the turn is {state}")

    async def _effects(self) -> list[str]:
        """What happened at the provider, each effect by its key."""
        return [each["operation_key"] for each in await self._provider("GET", "effects")]

    async def _requests(self) -> list[Json]:
        """What the provider was asked."""
        return await self._provider("GET", "requests")

    async def _provider(self, method: str, what: str, body: Json | None = None) -> Any:
        async with httpx2.AsyncClient(base_url=self.running.provider_url) as client:
            return (await client.request(method, f"/_control/{what}", json=body)).raise_for_status().json()


def _results(view: Json) -> list[Json]:
    return [message for message in view["messages"] if message["role"] == "tool"]


def _result(view: Json) -> Json:
    """The last that the model was told."""
    return _results(view)[-1]


def _decided(view: Json) -> tuple[str, str]:
    """How the last card stands, and by whose word."""
    card = view["cards"][-1]
    return card["state"], card["decided_by"]
