"""A process dies at every boundary of the gated call, for real; each time it ends with one effect and one result."""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import httpx2
import pytest

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
    ("admission", "tool_call.proposed.v1", ["before_commit.propose", "after_commit.propose", "after_publish", "before_ack"]),
    ("executor", "resource.resolve.v1", ["before_ack"]),
    (
        "permission",
        "permission.asked.v1",
        ["before_commit.open_approval", "after_commit.open_approval", "after_publish", "before_ack"],
    ),
    ("planner", "permission.requested.v1", ["before_ack"]),
    ("ingress", "permission.requested.v1", ["before_ack"]),
    ("ingress", "turn.changed.v1", ["before_ack"]),
    (
        "permission",
        "decision.relayed.v1",
        ["before_commit.decide_approval", "after_commit.decide_approval", "after_publish", "before_ack"],
    ),
    ("ingress", "permission.decided.v1", ["before_ack"]),
    ("admission", "permission.decided.v1", ["before_commit.decide", "after_commit.decide", "after_publish", "before_ack"]),
    ("permission", "decision.verify.v1", ["before_ack"]),
    ("admission", "claim.requested.v1", ["before_ack"]),
    (
        "executor",
        "command.ready.v1",
        ["after_claim", "before_provider", "after_provider", "before_report", "after_report", "before_ack"],
    ),
    ("admission", "command.reported.v1", ["before_commit.settle", "after_commit.settle", "after_publish", "before_ack"]),
    (
        "planner",
        "tool_call.settled.v1",
        ["before_commit.save_turn", "after_commit.save_turn", "after_model", "after_publish", "before_ack"],
    ),
]

POINTS = [(service, f"{service}:{message}:{moment}") for service, message, moments in BOUNDARIES for moment in moments]


@pytest.mark.req("F", "T1", "T2", "T3", "T4", "M2", "A4", "A6", "A9", "E2", "E6", "M5")
@pytest.mark.parametrize(("service", "point"), POINTS, ids=[point for _, point in POINTS])
async def test_a_crash_anywhere_leaves_one_effect_and_one_result(world: World, service: str, point: str) -> None:
    system = world.system
    await system.stop(service)
    await system.start(service, PLACET_CRASH_AT=point)
    conversation = asyncio.create_task(_whole_conversation(world))
    assert await system.services[service].ended() == CRASHED
    await system.start(service)
    view = await conversation
    assert [message["outcome"] for message in results(view)] == ["succeeded"]
    assert [message["role"] for message in view["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [effect["operation_key"] for effect in await world.effects()] == [view["cards"][0]["card"]["operation_id"]]
    assert len(view["cards"]) == 1
    await _nothing_is_left(world)


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
