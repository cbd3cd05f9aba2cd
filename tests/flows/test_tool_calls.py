"""What a model asks for (cases from the field by their numbers): names that repeat, and texts with two meanings."""

import json

import pytest

from placet.client import Refused
from world import World, create, delete, results, script


@pytest.mark.req("T13", "P2", "P10")
async def test_b12_a_reused_tool_call_id_authorises_nothing(world: World) -> None:
    first = await world.alice.submit(script([create("A", "r-1", hint="call_0")], "one"))
    await world.approve(await world.card(first))
    await world.state(first, "completed")
    conversation = first["conversation_id"]
    second = await world.alice.submit(script([delete("note-1", "r-1", hint="call_0")], "two"), conversation_id=conversation)
    other = await world.alice.submit(script([create("B", "r-2", hint="call_0")], "three"))
    twins = await world.alice.submit(script([create("C", hint="call_0"), create("D", hint="call_0")], "four"))
    foreign = await world.bob.submit(script([create("E", "r-1", hint="call_0")], "five"))
    cards = [await world.card(second), await world.card(other), await world.card(twins)]
    cards.append(await world.card(foreign, who=world.bob))
    assert len({card["tool_call_id"] for card in cards}) == len({card["interrupt_id"] for card in cards}) == 4
    assert [effect["payload"] for effect in await world.effects()] == [{"body": "A"}]
    await world.approve(cards[2])
    next_of_twins = await world.next_card(twins, cards[2])
    assert next_of_twins["arguments"]["body"] == "D"
    await world.deny(next_of_twins)
    view = await world.state(twins, "completed")
    by_call = {message["tool_call_id"]: message["outcome"] for message in results(view)}
    assert by_call == {cards[2]["tool_call_id"]: "succeeded", next_of_twins["tool_call_id"]: "denied"}
    assert [effect["payload"]["body"] for effect in await world.effects()] == ["A", "C"]


@pytest.mark.req("A1", "A3", "P10")
async def test_b27_two_unicode_forms_are_two_commands_and_identifiers_have_one(world: World) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    turn = await world.alice.submit(script([create(composed)], [create(decomposed)], "done"))
    first = await world.card(turn)
    await world.approve(first)
    second = await world.next_card(turn, first)
    assert first["digest"] != second["digest"]
    with pytest.raises(Refused) as refused:
        await world.ann.decide(second["interrupt_id"], "approve", first["digest"])
    assert (refused.value.status, refused.value.code) == (409, "digest_mismatch")
    await world.approve(second)
    await world.state(turn, "completed")
    assert [effect["payload"]["body"] for effect in await world.effects()] == [composed, decomposed]
    turn = await world.alice.submit(script([create("x", decomposed)], "done"))
    view = await world.state(turn, "completed")
    assert [(message["outcome"], "customer_id" in message["text"]) for message in results(view)] == [("rejected", True)]


@pytest.mark.req("A1", "A3")
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"customer_id":"C-42","body":"a","body":"b"}', "duplicate_key at $.body"),
        ('{"customer_id":"C-42","bod\\u0079":"a","body":"b"}', "duplicate_key at $.body"),
        ('{"customer_id":"C-42","body":{"a":{"b":1,"b":2}}}', "duplicate_key at $.body.a.b"),
        ('{"customer_id":"C-42","body":NaN}', "not_a_number at $.body"),
        ('{"customer_id":"C-42","body":9007199254740993}', "number_out_of_range at $.body"),
        ('{"customer_id":"C-42","body":"a\\u0000b"}', "nul_character at $.body"),
        ('{"customer_id":"C-42","body":"\\ud800"}', "lone_surrogate at $.body"),
    ],
)
async def test_b29_arguments_with_two_meanings_reach_nobody_and_the_model_is_told_where(
    world: World, raw: str, why: str
) -> None:
    turn = await world.alice.submit(script([{"tool": "crm_note_create", "raw": raw}], "done"))
    view = await world.state(turn, "completed")
    (result,) = results(view)
    assert result["outcome"] == "rejected"
    assert json.loads(result["text"])["reason"] == f"{why}: the arguments must be one plain JSON object"
    assert view["cards"] == []
    assert await world.scalar("permission", "select count(*) from approval where turn_id = $1", turn["turn_id"]) == 0
    assert await world.effects() == []
