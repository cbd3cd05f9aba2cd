"""The outbox: state and promise exist together or not at all, and a promise that is kept is deleted."""

import asyncio

import asyncpg
import pytest

from placet.contracts.catalogue import inbox_queue
from placet.contracts.examples import EXAMPLES
from placet.contracts.permissions import PermissionDecided
from placet.messaging import Promise, promise
from placet.testing import wait_until
from stations import DEED, Station

DECIDED = next(example for example in EXAMPLES if isinstance(example, PermissionDecided))
HEARS = inbox_queue("admission")
"""Gets permission.decided, and nothing else of what permission says."""


def decided() -> Promise:
    return promise("permission", DECIDED, tenant="t", conversation="c")


async def kept(station: Station) -> None:
    """Every promise is kept and deleted."""

    async def look() -> bool:
        return not await station.rows("permission", "outbox")

    await wait_until(look, "the outbox is empty")


async def ids(station: Station, count: int) -> list[str | None]:
    """The ids of so many messages, which are all that the queue holds."""
    found = [message.message_id for message in await station.take(HEARS, count)]
    assert await station.counts(HEARS) == (0, 0)
    return found


@pytest.mark.req("M2")
async def test_b17_a_decision_and_its_promise_are_stored_together_then_published_and_deleted(station: Station) -> None:
    outbox = await station.outbox("permission", grace=3600, relay=True)
    said = decided()
    await outbox.commit(DEED, [said], name="decided")
    (message,) = await station.take(HEARS, 1)
    assert (message.message_id, message.body, message.type) == (said.message_id, said.body, said.wire)
    assert message.user_id == station.ground.run.user_prefix + "permission"
    assert message.delivery_mode == 2
    await kept(station)
    assert await station.rows("permission", "deed") == [{"name": "decided"}]


@pytest.mark.req("M2")
async def test_b17_a_transition_that_fails_promises_nothing(station: Station) -> None:
    outbox = await station.outbox("permission", grace=3600, relay=True)
    with pytest.raises(asyncpg.CheckViolationError):
        await outbox.commit(DEED, [decided()], name="")
    assert await station.rows("permission", "outbox") == []
    last = decided()
    await outbox.commit(DEED, [last], name="decided")
    assert await ids(station, 1) == [last.message_id]


@pytest.mark.req("M2")
async def test_b17_a_promise_that_cannot_be_stored_takes_its_state_with_it(station: Station) -> None:
    outbox = await station.outbox("permission", grace=3600)
    said = decided()
    await (await station.database("permission")).transition(DEED, promises=[said], name="before")
    with pytest.raises(asyncpg.UniqueViolationError):
        await outbox.commit(DEED, [said], name="after")
    assert await station.rows("permission", "deed") == [{"name": "before"}]


@pytest.mark.req("M2")
async def test_a_transition_that_finds_nothing_to_change_promises_nothing(station: Station) -> None:
    outbox = await station.outbox("permission", grace=3600, relay=True)
    first, again = decided(), decided()
    assert (await outbox.commit(DEED, [first], name="decided"))["changed"]
    assert not (await outbox.commit(DEED, [again], name="decided"))["changed"]
    await kept(station)
    assert await ids(station, 1) == [first.message_id]


@pytest.mark.req("M2")
async def test_one_transition_that_fails_among_many_at_once_takes_no_neighbour_with_it(station: Station) -> None:
    outbox = await station.outbox("permission", grace=3600, relay=True)
    said = {f"deed-{number}" if number != 20 else "": decided() for number in range(40)}
    commits = (outbox.commit(DEED, [each], name=name) for name, each in said.items())
    answers = await asyncio.gather(*commits, return_exceptions=True)
    assert [type(answer) for answer in answers if isinstance(answer, Exception)] == [asyncpg.CheckViolationError]
    good = {each.message_id for name, each in said.items() if name}
    await kept(station)
    assert set(await ids(station, 39)) == good
    assert {row["name"] for row in await station.rows("permission", "deed")} == said.keys() - {""}


@pytest.mark.req("M2")
async def test_a_promise_kept_while_others_are_being_deleted_is_deleted_too(station: Station) -> None:
    outbox = await station.outbox("permission", grace=3600, relay=True)
    first, second = decided(), decided()
    holder = await asyncpg.connect(station.ground.postgres("permission"))
    async with holder.transaction():
        await outbox.commit(DEED, [first], name="first")
        await holder.execute("select from outbox where message_id = $1 for update", first.message_id)
        await wait_until(lambda: deleting(station), "the first promise is being deleted")
        await outbox.commit(DEED, [second], name="second")
        assert await ids(station, 2) == [first.message_id, second.message_id]
    await holder.close()
    await kept(station)


async def deleting(station: Station) -> bool:
    waiting = "pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'delete %'"
    return bool(await station.rows("permission", waiting))
