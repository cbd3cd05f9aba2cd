"""The trace of a suspended turn and of its resumption: two trees, one link (O1)."""

import json
from collections.abc import AsyncGenerator, Sequence

import pytest

from fakes.otlp_receiver import OtlpReceiver, ReceivedSpan
from placet.client import Client
from placet.contracts.catalogue import SERVICES
from placet.local.backing import Backing
from placet.local.issuer import APPROVER, ASKER
from placet.local.system import system as run_system
from placet.testing import wait_until
from world import Json, World, create, read, results, script


@pytest.fixture(scope="module")
async def traces() -> AsyncGenerator[OtlpReceiver]:
    """Where the services of this module send their spans."""
    async with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
async def world(backing: Backing, traces: OtlpReceiver) -> AsyncGenerator[World]:
    """The people, at a system that exports its spans."""
    settings = {"*": {"OTEL_EXPORTER_OTLP_ENDPOINT": traces.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "50"}}
    async with run_system(backing, settings) as running, World(running) as made:
        yield made


Tree = tuple[str, str, tuple["Tree", ...]]


def tree(spans: Sequence[ReceivedSpan], root: ReceivedSpan) -> Tree:
    """A span as (service, name, children), its children in order."""
    children = (tree(spans, span) for span in spans if span.parent_id == root.span_id)
    return (root.service.removeprefix("placet-"), root.name, tuple(sorted(children, key=lambda child: (child[1], child))))


def accepted(*proposals: Tree) -> Tree:
    """The tree of a turn whose model asks for some calls and then waits."""
    chat: Tree = ("planner", "chat scripted", ())
    told: Tree = ("ingress", "process turn.changed.v1", ())
    return ("ingress", "POST /v1/turns", (("planner", "process turn.accepted.v1", (chat, *proposals, told)),))


ASKED: Tree = (
    "admission",
    "process tool_call.proposed.v1",
    (
        (
            "permission",
            "process permission.asked.v1",
            (
                ("ingress", "process permission.requested.v1", ()),
                ("planner", "process permission.requested.v1", ()),
            ),
        ),
        ("executor", "process resource.resolve.v1", ()),
    ),
)


def executed(action: str, *after: Tree) -> Tree:
    """The tree of an approved command, and what the planner's work on its end leads to."""
    return (
        "admission",
        "process permission.decided.v1",
        (
            (
                "executor",
                "process command.ready.v1",
                (
                    ("executor", f"dispatch {action}", ()),
                    ("admission", "process claim.requested.v1", (("permission", "process decision.verify.v1", ()),)),
                    ("admission", "process command.reported.v1", (("planner", "process tool_call.settled.v1", after),)),
                ),
            ),
        ),
    )


ALLOWED: Tree = (
    "admission",
    "process tool_call.proposed.v1",
    (
        (
            "permission",
            "process permission.asked.v1",
            (
                executed("crm.customer.get", ("ingress", "process turn.changed.v1", ())),
                ("ingress", "process permission.decided.v1", ()),
            ),
        ),
    ),
)

RESUMED: Tree = (
    "permission",
    "process decision.relayed.v1",
    (
        executed(
            "crm.note.create",
            ("planner", "chat scripted", ()),
            ("ingress", "process turn.changed.v1", ()),
            ("ingress", "process turn.changed.v1", ()),
        ),
        ("ingress", "process permission.decided.v1", ()),
    ),
)


def _root(spans: Sequence[ReceivedSpan], name: str, turn_id: str) -> ReceivedSpan | None:
    found = [span for span in spans if span.name == name and span.attributes.get("placet.turn.id") == turn_id]
    return found[0] if found else None


async def _whole(traces: OtlpReceiver, turn: Json, expected: Tree) -> ReceivedSpan:
    """The root of this tree of the turn, once all of it has been exported."""

    def look(spans: Sequence[ReceivedSpan]) -> ReceivedSpan | None:
        root = _root(spans, expected[1], turn["turn_id"])
        return root if root and tree(spans, root) == expected else None

    found = await traces.wait_for(look, f"the whole tree under {expected[1]}", 20)
    assert found is not None
    return found


@pytest.mark.req("O1", "O2")
async def test_a_resumed_trace_is_a_new_tree_with_a_link_to_the_span_that_suspended(
    world: World, traces: OtlpReceiver
) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    await world.approve(await world.card(turn))
    await world.state(turn, "completed")

    suspended = await _whole(traces, turn, accepted(ASKED))
    resumed = await _whole(traces, turn, RESUMED)
    assert (suspended.parent_id, resumed.parent_id) == (None, None)
    assert suspended.trace_id != resumed.trace_id
    links = {link.attributes["placet.link"]: link for link in resumed.links}
    asked = next(span for span in traces.trace(suspended.trace_id) if span.name == "process permission.asked.v1")
    assert (links["resumes"].trace_id, links["resumes"].span_id) == (asked.trace_id, asked.span_id)
    decided = next(span for span in traces.spans if span.span_id == links["decided_by"].span_id)
    assert (decided.name, decided.service) == ("POST /v1/approvals/{id}/decision", "placet-ingress")


@pytest.mark.req("O1")
async def test_both_traces_carry_the_ids_by_which_one_finds_the_other(world: World, traces: OtlpReceiver) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    await world.approve(card)
    await world.state(turn, "completed")

    def of_the_turn(spans: Sequence[ReceivedSpan]) -> set[str] | None:
        found = {span.trace_id for span in spans if span.attributes.get("placet.turn.id") == turn["turn_id"]}
        of_operation = {s.trace_id for s in spans if s.attributes.get("placet.operation.id") == card["operation_id"]}
        return found if len(found) == 2 and of_operation == found else None

    assert await traces.wait_for(of_the_turn, "two traces of one turn, both with the operation", 20)


@pytest.mark.req("O3", "P6")
async def test_b48_no_payload_and_no_token_stands_in_any_span_or_log(world: World, traces: OtlpReceiver) -> None:
    tokens = [world.system.token(*who) for who in (("alice", world.tenant, *ASKER), ("ann", world.tenant, *APPROVER))]
    async with Client(world.system.url, tokens[0]) as alice, Client(world.system.url, tokens[1]) as ann:
        turn = await alice.submit(script([read(), create("SECRET-BODY-123")], "SECRET-WORDS-456"))
        await wait_until(lambda: _results(alice, turn), "the customer has been read")
        await world.approve(await world.card(turn, who=alice), who=ann)
        view = await world.state(turn, "completed", who=alice)
    await _whole(traces, turn, accepted(ALLOWED, ASKED))
    await _whole(traces, turn, RESUMED)
    customer = json.loads(results(view)[0]["text"])
    parts = [part for token in tokens for part in token.split(".")[1:]]
    logs = {path.stem: path.read_text() for path in world.system.folder.glob("*.log")}
    assert logs.keys() >= set(SERVICES)
    for secret in ("SECRET-BODY-123", "SECRET-WORDS-456", customer["email"], *tokens, *parts):
        assert secret not in repr(traces.spans)
        assert [name for name, written in logs.items() if secret in written] == []


async def _results(who: Client, turn: Json) -> list[Json]:
    return results(await who.conversation(turn["conversation_id"]))
