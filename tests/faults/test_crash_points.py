"""A process dies at every boundary of the gated call, for real; each time it ends with one effect and one result."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg
import httpx2
import pytest

from placet.local.processes import DidNotStart
from placet.local.run import DATABASES
from placet.service.crash import CRASHED
from placet.testing import wait_until
from world import Json, World, create, results, script

BOUNDARIES = [
    ("ingress", "POST /v1/turns", ["before_commit.accept_turn", "after_commit.accept_turn", "after_publish"]),
    (
        "planner",
        "turn.accepted.v1",
        [
            "before_commit.begin_turn",
            "after_commit.begin_turn",
            "after_model",
            "before_commit.save_turn",
            "after_commit.save_turn",
            "after_publish",
            "before_ack",
        ],
    ),
    (
        "admission",
        "tool_call.proposed.v1",
        ["after_question", "before_commit.propose", "after_commit.propose", "after_publish", "before_ack"],
    ),
    ("executor", "resource.resolve.v1", ["before_reply", "before_ack"]),
    (
        "permission",
        "permission.asked.v1",
        ["before_commit.open_approval", "after_commit.open_approval", "after_publish", "before_ack"],
    ),
    ("planner", "permission.requested.v1", ["before_commit.mark_awaiting", "after_commit.mark_awaiting", "before_ack"]),
    ("ingress", "permission.requested.v1", ["before_commit.show_card", "after_commit.show_card", "before_ack"]),
    ("ingress", "turn.changed.v1", ["before_commit.apply_turn", "after_commit.apply_turn", "before_ack"]),
    ("ingress", "POST /v1/approvals/{id}/decision", ["after_question"]),
    (
        "permission",
        "decision.relayed.v1",
        ["before_commit.decide_approval", "after_commit.decide_approval", "after_publish", "before_reply", "before_ack"],
    ),
    ("ingress", "permission.decided.v1", ["before_commit.close_card", "after_commit.close_card", "before_ack"]),
    ("admission", "permission.decided.v1", ["before_commit.decide", "after_commit.decide", "after_publish", "before_ack"]),
    ("permission", "decision.verify.v1", ["before_reply", "before_ack"]),
    (
        "admission",
        "claim.requested.v1",
        ["after_question", "before_commit.claim", "after_commit.claim", "before_reply", "before_ack"],
    ),
    (
        "executor",
        "command.ready.v1",
        [
            "after_question",
            "after_claim",
            "before_provider",
            "after_provider",
            "before_report",
            "after_report",
            "before_ack",
        ],
    ),
    ("admission", "command.reported.v1", ["before_commit.settle", "after_commit.settle", "after_publish", "before_ack"]),
    (
        "planner",
        "tool_call.settled.v1",
        ["before_commit.save_turn", "after_commit.save_turn", "after_model", "after_publish", "before_ack"],
    ),
]

POINTS = [(service, message, moment) for service, message, moments in BOUNDARIES for moment in moments]


@pytest.mark.req("F", "T1", "T2", "T3", "T4", "M2", "A4", "A6", "A9", "E2", "E6", "M5")
@pytest.mark.parametrize(("service", "message", "moment"), POINTS, ids=map(":".join, POINTS))
async def test_a_crash_anywhere_leaves_one_effect_and_one_result(
    world: World, service: str, message: str, moment: str
) -> None:
    await _crashes_at(world, service, message, moment)
    conversation = asyncio.create_task(_whole_conversation(world))
    assert await world.system.services[service].ended() == CRASHED
    await world.system.start(service)
    await _one_effect_and_one_result(world, await conversation)


@pytest.mark.req("F", "M2", "E2", "E6")
async def test_a_relay_that_dies_before_it_notes_what_it_published_leaves_one_effect_and_one_result(world: World) -> None:
    await _crashes_at(world, "admission", "permission.decided.v1", "after_commit.decide")
    conversation = asyncio.create_task(_whole_conversation(world))
    assert await world.system.services["admission"].ended() == CRASHED
    with suppress(DidNotStart):  # the relay finds what the first crash left while the service still starts
        await world.system.start("admission", PLACET_CRASH_AT=":after_relay")
    assert await world.system.services["admission"].ended() == CRASHED
    await _promises_fall_due_again(world, "admission")
    await world.system.start("admission")
    await _one_effect_and_one_result(world, await conversation)


@pytest.mark.req("F", "A6", "E3", "E4")
async def test_a_claim_whose_answer_is_lost_ends_unknown_at_a_provider_that_forgets_keys(world: World) -> None:
    await world.system.stop("executor")
    await world.system.start("executor", PLACET_CRM_REPLAY_SECONDS="0")
    await _crashes_at(world, "admission", "claim.requested.v1", "after_commit.claim")
    conversation = asyncio.create_task(_whole_conversation(world))
    assert await world.system.services["admission"].ended() == CRASHED
    await world.system.start("admission")
    view = await conversation
    await world.system.stop("executor")
    assert [message["outcome"] for message in results(view)] == ["unknown"]
    assert await world.requests("POST") == []


async def _crashes_at(world: World, service: str, message: str, moment: str) -> None:
    """Start a service anew, such that it dies there."""
    await world.system.stop(service)
    await world.system.start(service, **world.crash_at(service, message, moment))


async def _one_effect_and_one_result(world: World, view: Json) -> None:
    assert [message["outcome"] for message in results(view)] == ["succeeded"]
    assert [message["role"] for message in view["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [effect["operation_key"] for effect in await world.effects()] == [view["cards"][0]["card"]["operation_id"]]
    assert len(view["cards"]) == 1
    await _nothing_is_left(world)


async def _promises_fall_due_again(world: World, service: str) -> None:
    """The time for which a relay that died had taken them is over."""
    connection = await asyncpg.connect(world.system.database_url(service))
    try:
        due = "update outbox set available_at = available_at - interval '1 minute' returning wire"
        assert "command.ready.v1" in [row["wire"] for row in await connection.fetch(due)]
    finally:
        await connection.close()


async def _whole_conversation(world: World) -> Json:
    """Ask, approve, wait for the end, as people do whose requests may fail at any time: by sending them again."""
    turn = await _again(lambda: world.alice.submit(script([create("hello")], "done"), key="the same key"))
    card = await world.card(turn)
    await _again(lambda: _decided(world, card))
    return await world.state(turn, "completed", within=60)


async def _decided(world: World, card: Json) -> Json | None:
    answer = await world.approve(card)
    return answer if answer.get("state") == "approved" else None


async def _again(attempt: Callable[[], Awaitable[Json | None]]) -> Json:
    async def look() -> Json | None:
        try:
            return await attempt()
        except httpx2.TransportError:
            return None

    return await wait_until(look, "a request that is sent again succeeds", within=60)


async def _nothing_is_left(world: World) -> None:
    """No promise is owed, and nothing was parked."""
    for service in DATABASES:
        connection = await asyncpg.connect(world.system.database_url(service))
        try:
            assert await connection.fetchval("select count(*) from parked") == 0

            async def all_kept(connection: asyncpg.Connection = connection) -> bool:
                return await connection.fetchval("select count(*) from outbox") == 0

            await wait_until(all_kept, f"every promise of {service} is kept")
        finally:
            await connection.close()
