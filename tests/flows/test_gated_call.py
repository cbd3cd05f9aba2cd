"""The main job: one gated call, from the turn to one effect."""

import pytest

from world import World, create, read, results, script


@pytest.mark.req("T2", "T3", "T4", "P2", "E2", "A3")
async def test_an_approved_call_happens_once(world: World) -> None:
    turn = await world.alice.submit(script([read(), create("hello")], "done"))
    card = await world.card(turn)
    assert await world.effects() == []
    answer = await world.approve(card)
    assert (answer["state"], answer["decided_by"]) == ("approved", "ann")
    view = await world.state(turn, "completed")
    assert [(message["role"], message["outcome"]) for message in view["messages"]] == [
        ("user", None),
        ("assistant", None),
        ("tool", "succeeded"),
        ("tool", "succeeded"),
        ("assistant", None),
    ]
    (effect,) = await world.effects()
    assert effect["operation_key"] == card["operation_id"]
    assert effect["payload"] == {"body": "hello"}
    assert len(results(view)) == 2
