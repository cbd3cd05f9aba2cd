"""A planner in an attacker's hands: its login is good, and what it says on behalf of others has no effect (M3, B25)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import asyncpg
import pytest
from aio_pika.exceptions import DeliveryError

from placet.contracts.catalogue import exchange
from placet.contracts.commands import CommandReady, CommandReported
from placet.contracts.ids import new_id
from placet.contracts.message import Message, wrap
from placet.contracts.permissions import PermissionDecided
from placet.contracts.turns import ToolCallProposed
from placet.local.system import System
from world import World, create, script

Json = dict[str, Any]


def decided(card: Json) -> PermissionDecided:
    """The very decision that the permission service would announce had ann approved the card."""
    told = {name: card[name] for name in ("interrupt_id", "operation_id", "turn_id", "conversation_id", "tool_call_id")}
    until = datetime.now(UTC) + timedelta(hours=1)
    more = {name: card[name] for name in ("action", "digest", "rule", "policy_version")}
    return PermissionDecided.model_validate(
        told | more | {"decision": "approved", "decided_by": "ann", "valid_until": until}
    )


def ready(card: Json) -> CommandReady:
    return CommandReady(operation_id=card["operation_id"], action=card["action"])


def reported(card: Json) -> CommandReported:
    return CommandReported(operation_id=card["operation_id"], fence=1, worker="w", outcome="succeeded")


async def say(system: System, message: Message, key: str, tenant: str, source: str) -> str:
    """Say it on the planner's exchange with the planner's login, as whoever `source` is. Returns the message's id."""
    message_id = new_id("msg")
    body = wrap(message, source=source, tenant=tenant, conversation="", cause="", traceparent="").encode()
    signed = aio_pika.Message(body, message_id=message_id, user_id=f"{system.run.user_prefix}planner", type=message.wire)
    async with await aio_pika.connect(system.amqp_url("planner")) as connection:
        channel = await connection.channel(on_return_raises=True)
        target = await channel.get_exchange(exchange("planner"), ensure=False)
        await target.publish(signed, key, mandatory=True)
    return message_id


@pytest.mark.req("M3", "P6", "M4")
async def test_b25_a_planner_that_was_taken_over_decides_nothing(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    for message, source in ((decided(card), "permission"), (ready(card), "admission"), (reported(card), "executor")):
        with pytest.raises(DeliveryError):
            await say(world.system, message, message.wire, world.tenant, source)
    for message, source in ((decided(card), "permission"), (reported(card), "executor")):
        smuggled = await say(world.system, message, "tool_call.proposed.v1", world.tenant, source)
        assert "came over 'placet.planner'" in (await world.parked("admission", smuggled))[0]
    smuggled = await say(world.system, decided(card), "turn.changed.v1", world.tenant, "permission")
    assert "came over 'placet.planner'" in (await world.parked("ingress", smuggled))[0]
    assert await world.effects() == []
    assert (await world.card(turn))["interrupt_id"] == card["interrupt_id"]
    await world.approve(card)
    await world.state(turn, "completed")
    (effect,) = await world.effects()
    assert effect["operation_key"] == card["operation_id"]


@pytest.mark.req("P6", "M3", "T13")
@pytest.mark.parametrize("lie", ["principal", "tenant", "turn", "signature"])
async def test_b25_a_planner_that_was_taken_over_proposes_in_nobodys_name(world: World, lie: str) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    await world.card(turn)
    planner = await asyncpg.connect(world.system.database_url("planner"))
    mandate = await planner.fetchval("select mandate from turn where turn_id = $1", turn["turn_id"])
    await planner.close()
    proposed = ToolCallProposed(
        turn_id="turn_invented" if lie == "turn" else turn["turn_id"],
        conversation_id=turn["conversation_id"],
        tool_call_id=new_id("call"),
        principal="somebody-else" if lie == "principal" else "alice",
        mandate="0" * 64 if lie == "signature" else mandate,
        action="crm.customer.get",
        arguments='{"customer_id":"C-42"}',
    )
    tenant = world.other if lie == "tenant" else world.tenant
    message_id = await say(world.system, proposed, proposed.wire, tenant, "planner")
    assert "nobody vouches" in (await world.parked("admission", message_id))[0]
    assert not [asked for asked in await world.requests("GET", tenant) if asked["operation_key"]]
