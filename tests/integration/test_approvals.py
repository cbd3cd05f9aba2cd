"""Permission's rows in a real database: a question is stored once, decided once, and found when its time is over."""

from dataclasses import replace
from datetime import timedelta

import pytest

from placet.contracts.ids import new_id
from placet.permission.domain import Approval, expired
from placet.permission.store import Store
from question import APPROVAL
from stations import Station


@pytest.fixture
async def store(station: Station) -> Store:
    made = Store(await station.database("permission"), await station.outbox("permission", grace=3600))
    await station.execute("permission", "truncate approval")
    return made


async def asked(store: Store, seconds: float = 3600) -> Approval:
    """An open question that is to be answered within so many seconds."""
    ids = {"interrupt_id": new_id("apr"), "tool_call_id": new_id("call")}
    question = replace(APPROVAL, **ids, expires_at=await store.now() + timedelta(seconds=seconds))
    assert await store.open(question, b"{}", [])
    return question


@pytest.mark.req("P2", "P4")
async def test_a_question_is_read_as_it_was_stored_and_by_its_tenant_alone(store: Store) -> None:
    question = await asked(store)
    assert await store.approval("t1", question.interrupt_id) == question
    assert await store.approval("t2", question.interrupt_id) is None
    assert not await store.open(replace(question, interrupt_id=new_id("apr")), b"{}", [])


@pytest.mark.req("P4")
async def test_a_question_is_decided_once(store: Store) -> None:
    question = await asked(store)
    mine = replace(question, state="denied", decided_by="ann", comment="no")
    at = await store.decide(mine, [])
    assert at is not None
    assert await store.decide(replace(question, state="approved", decided_by="amy"), []) is None
    assert await store.approval("t1", question.interrupt_id) == replace(mine, decided_at=at)


@pytest.mark.req("P7")
async def test_what_nobody_answered_is_found_and_ends_once(store: Store) -> None:
    await asked(store)
    late = await asked(store, seconds=-1)
    assert await store.due() == [replace(late, past=True)]
    assert await store.decide(replace(late, state="approved", decided_by="ann"), []) is None
    assert await store.expire(late, [])
    assert not await store.expire(late, [])
    assert await store.due() == []
    standing = await store.approval("t1", late.interrupt_id)
    assert standing is not None
    assert (standing.state, standing.decided_by, expired(late).decided_by) == ("expired", None, None)
