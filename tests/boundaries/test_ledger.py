"""The ledger holds what was approved, whole, and nothing changes it: not even the service that owns it (A5)."""

import asyncpg
import pytest

from placet.canonical import CanonicalCommand, command_digest
from world import World, create, script

ROW = "select * from command join proposal using (tenant, operation_id) where operation_id = $1"


@pytest.mark.req("A5", "A3", "P10")
async def test_a_command_carries_everything_that_was_approved(world: World) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    await world.approve(card)
    await world.state(turn, "completed")
    ledger = await asyncpg.connect(world.system.database_url("admission"))
    row = await ledger.fetchrow(ROW, card["operation_id"])
    await ledger.close()
    assert row is not None
    assert CanonicalCommand.decode(row["canonical"]) == CanonicalCommand(
        tenant=world.tenant,
        principal="alice",
        action="crm.note.create",
        action_version=1,
        resource="C-42",
        arguments={"customer_id": "C-42", "body": "hello"},
        expected_revision=card["expected_revision"],
    )
    assert row["digest"] == card["digest"] == command_digest(row["canonical"])
    assert (row["interrupt_id"], row["decided_by"]) == (card["interrupt_id"], "ann")
    assert (row["policy_version"], row["rule"]) == (card["policy_version"], card["rule"])
    assert row["expires_at"].isoformat() == card["expires_at"].replace("Z", "+00:00")


@pytest.mark.req("A5")
@pytest.mark.parametrize(
    "change",
    [
        "update proposal set canonical = '{}' where operation_id = $1",
        "update proposal set digest = 'sha256:0' where operation_id = $1",
        "delete from proposal where operation_id = $1",
        "update command set digest = 'sha256:0' where operation_id = $1",
        "update command set expires_at = now() + interval '1 year' where operation_id = $1",
        "update command set decided_by = 'somebody-else' where operation_id = $1",
        "delete from command where operation_id = $1",
        "update attempt set outcome = 'denied' where operation_id = $1",
        "delete from attempt where operation_id = $1",
    ],
)
async def test_nothing_changes_what_was_proposed_decided_or_attempted(world: World, change: str) -> None:
    turn = await world.alice.submit(script([create("hello")], "done"))
    card = await world.card(turn)
    await world.approve(card)
    await world.state(turn, "completed")
    ledger = await asyncpg.connect(world.system.database_url("admission"))
    before = await ledger.fetchrow(ROW, card["operation_id"])
    with pytest.raises(asyncpg.RestrictViolationError, match="never changes"):
        await ledger.execute(change, card["operation_id"])
    assert await ledger.fetchrow(ROW, card["operation_id"]) == before
    await ledger.close()
