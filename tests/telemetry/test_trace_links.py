"""The trace of a suspended turn and of its resumption: two trees, one link (O1)."""

from collections.abc import AsyncGenerator, Callable, Sequence

import pytest

from fakes.otlp_receiver import OtlpReceiver, ReceivedSpan
from placet.local.backing import Backing
from placet.local.system import system as run_system
from world import World, create, read, script


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
    children = sorted((span for span in spans if span.parent_id == root.span_id), key=lambda span: (span.name, span.service))
    return (root.service.removeprefix("placet-"), root.name, tuple(tree(spans, child) for child in children))


SUSPENDED: Tree = (
    "ingress",
    "POST /v1/turns",
    (
        (
            "planner",
            "process turn.accepted.v1",
            (
                ("planner", "chat scripted", ()),
                (
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
                ),
                ("ingress", "process turn.changed.v1", ()),
            ),
        ),
    ),
)

RESUMED: Tree = (
    "permission",
    "process decision.relayed.v1",
    (
        (
            "admission",
            "process permission.decided.v1",
            (
                (
                    "executor",
                    "process command.ready.v1",
                    (
                        ("executor", "dispatch crm.note.create", ()),
                        ("admission", "process claim.requested.v1", (("permission", "process decision.verify.v1", ()),)),
                        (
                            "admission",
                            "process command.reported.v1",
                            (
                                (
                                    "planner",
                                    "process tool_call.settled.v1",
                                    (
                                        ("planner", "chat scripted", ()),
                                        ("ingress", "process turn.changed.v1", ()),
                                        ("ingress", "process turn.changed.v1", ()),
                                    ),
                                ),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        ("ingress", "process permission.decided.v1", ()),
    ),
)


def _root(spans: Sequence[ReceivedSpan], name: str, turn_id: str) -> ReceivedSpan | None:
    found = [span for span in spans if span.name == name and span.attributes.get("placet.turn.id") == turn_id]
    return found[0] if found else None


@pytest.mark.req("O1", "O2")
async def test_a_resumed_trace_is_a_new_tree_with_a_link_to_the_span_that_suspended(
    world: World, traces: OtlpReceiver
) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    await world.approve(await world.card(turn))
    await world.state(turn, "completed")

    def whole(name: str, expected: Tree) -> Callable[[Sequence[ReceivedSpan]], ReceivedSpan | None]:
        def look(spans: Sequence[ReceivedSpan]) -> ReceivedSpan | None:
            root = _root(spans, name, turn["turn_id"])
            return root if root and tree(spans, root) == expected else None

        return look

    suspended = await traces.wait_for(whole("POST /v1/turns", SUSPENDED), "the whole tree of the suspended turn", 20)
    resumed = await traces.wait_for(whole("process decision.relayed.v1", RESUMED), "the whole tree of the resumption", 20)
    assert suspended is not None
    assert resumed is not None
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


@pytest.mark.req("O3")
async def test_b48_no_payload_stands_in_any_span(world: World, traces: OtlpReceiver) -> None:
    turn = await world.alice.submit(script([read(), create("SECRET-BODY-123")], "done"))
    await world.approve(await world.card(turn))
    await world.state(turn, "completed")
    await traces.wait_for(
        lambda spans: _root(spans, "process decision.relayed.v1", turn["turn_id"]), "the resumption has been exported", 20
    )
    assert "SECRET-BODY-123" not in repr(traces.spans)
    for log in world.system.folder.glob("*.log"):
        assert "SECRET-BODY-123" not in log.read_text()
