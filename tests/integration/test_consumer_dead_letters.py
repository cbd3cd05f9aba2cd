"""The executor owns no database: it parks among its own dead letters, with bytes and reason."""

import json

import pytest

from oddities import FarTime, Nameless, say_oddly
from placet.contracts.catalogue import dead_queue
from placet.contracts.commands import CommandReady
from placet.contracts.examples import EXAMPLES
from placet.messaging import Promise, promise
from stations import Heard, Station

READY = next(example for example in EXAMPLES if isinstance(example, CommandReady))


def ready() -> Promise:
    return promise("admission", READY, tenant="t", conversation="c")


@pytest.mark.req("M4")
async def test_what_cannot_be_read_is_kept_with_its_bytes_and_why(station: Station) -> None:
    said = ready()
    body = json.dumps(json.loads(said.body) | {"type": "command.ready.v9"}).encode()
    channel = await station.channel("admission")
    await station.say(channel, "admission", "admission", said.wire, body)
    await station.consumer("executor", Heard())
    (found,) = await station.take(dead_queue("executor"), 1)
    assert (found.body, found.message_id, found.delivery_mode) == (body, "m-1", 2)
    assert found.headers["placet-reason"] == "unknown type 'command.ready.v9'"
    assert found.headers["placet-exchange"] == "placet.admission"
    assert found.headers["placet-routing-key"] == said.wire
    assert found.headers["placet-user-id"] == station.ground.run.user_prefix + "admission"


@pytest.mark.req("M4")
async def test_b39_what_came_without_a_message_id_is_kept_under_one_of_its_own(station: Station) -> None:
    channel = await station.channel("admission")
    for _ in range(3):
        await say_oddly(station, channel, "admission", CommandReady.wire, b"{not json", Nameless)
    await station.consumer("executor", Heard())
    dead = await station.take(dead_queue("executor"), 3)
    assert [each.body for each in dead] == [b"{not json"] * 3
    assert len({each.message_id for each in dead} - {None}) == 3
    assert all(each.headers["placet-reason"] == "not_json at offset 1" for each in dead)


@pytest.mark.req("M4")
async def test_a_dead_letter_says_that_its_properties_could_not_be_read(station: Station) -> None:
    channel = await station.channel("admission")
    body = ready().body
    await say_oddly(station, channel, "admission", CommandReady.wire, body, FarTime)
    await station.consumer("executor", Heard())
    (dead,) = await station.take(dead_queue("executor"), 1)
    assert dead.body == body
    assert dead.headers["placet-unreadable"]
