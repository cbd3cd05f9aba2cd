"""Ingress's read model on a real PostgreSQL: what users see of a turn, and that no statement reads the whole tenant."""

import json
import secrets
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from grounds import Ground
from placet.auth import Principal
from placet.contracts.examples import EXAMPLES
from placet.contracts.permissions import PermissionDecided, PermissionRequested
from placet.contracts.turns import MessageView, TurnAccepted, TurnChanged, TurnState
from placet.ingress.store import Store
from placet.messaging import Outbox
from placet.service.database import Database, Query, load_queries

CARD = next(example for example in EXAMPLES if isinstance(example, PermissionRequested))
DECIDED = next(example for example in EXAMPLES if isinstance(example, PermissionDecided))
"""The card of the examples, and its decision."""

STATEMENTS = load_queries("placet.ingress")

HELD = 1000
"""Conversations of the tenant, each with a turn, a message, a card, a stall and an event."""

MOST = 100
"""Rows that one statement may read: a page of cards is 50 of them."""

FILL = f"""
insert into conversation (tenant, conversation_id, owner, last_event)
    select 't', 'conv_' || n, 'alice', 1 from generate_series(1, {HELD}) n;
insert into turn_view (tenant, turn_id, conversation_id)
    select 't', 'turn_' || n, 'conv_' || n from generate_series(1, {HELD}) n;
insert into accepted_turn (tenant, principal, idempotency_key, fingerprint, turn_id, conversation_id)
    select 't', 'alice', 'key_' || n, '', 'turn_' || n, 'conv_' || n from generate_series(1, {HELD}) n;
insert into message_view (tenant, conversation_id, position, turn_id, body)
    select 't', 'conv_' || n, 0, 'turn_' || n, '{{}}' from generate_series(1, {HELD}) n;
insert into card (tenant, interrupt_id, conversation_id, turn_id, body, state)
    select 't', 'apr_' || n, 'conv_' || n, 'turn_' || n, '{{}}', 'pending' from generate_series(1, {HELD}) n;
insert into stall (tenant, stall_id, conversation_id, turn_id, over)
    select 't', 'stall_' || n, 'conv_' || n, 'turn_' || n, false from generate_series(1, {HELD}) n;
insert into event (tenant, conversation_id, event_id, type, interrupt_id)
    select 't', 'conv_' || n, 1, 'permission.requested.v1', 'apr_' || n from generate_series(1, {HELD}) n;
analyze
"""

VALUES: dict[str, Any] = {
    "after": 0,
    "after_id": "",
    "after_time": datetime(1970, 1, 1, tzinfo=UTC),
    "attempt": 1,
    "conversation_id": "conv_7",
    "data": "{}",
    "decided_by": "ann",
    "fingerprint": "",
    "idempotency_key": "key_7",
    "interrupt_id": "apr_7",
    "late": False,
    "messages": "[]",
    "most": 50,
    "over": False,
    "owner": "alice",
    "principal": "alice",
    "promises": [],
    "reason": "",
    "revision": 2,
    "stall_id": "stall_7",
    "stalls": ["stall_7"],
    "state": "approved",
    "tenant": "t",
    "turn_id": "turn_7",
    "type": "turn.changed.v1",
}
"""What the statements take: all of it is there in the tenant."""


@pytest.fixture(scope="module")
async def full(shared_ground: Ground) -> AsyncGenerator[asyncpg.Connection]:
    """A connection that sees a tenant who holds much; nothing of it stays."""
    connection = await asyncpg.connect(shared_ground.postgres("ingress", owner=True))
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(FILL)
    yield connection
    await transaction.rollback()
    await connection.close()


async def rows_read(connection: asyncpg.Connection, query: Query) -> dict[str, float]:
    """How many rows of each table a statement reads; what it writes is taken back."""
    values = query.bind({name: VALUES[name] for name in query.parameters})
    tried = connection.transaction()
    await tried.start()
    plan = json.loads(await connection.fetchval(f"explain (analyze, format json) {query.text}", *values))
    await tried.rollback()
    read: dict[str, float] = {}
    for node in nodes(plan[0]["Plan"]):
        if "Relation Name" in node and node["Node Type"].endswith("Scan"):
            each = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            table = node["Relation Name"]
            read[table] = read.get(table, 0) + each * node["Actual Loops"]
    return read


def nodes(plan: dict[str, Any]) -> Generator[dict[str, Any]]:
    """A plan and all that is beneath it."""
    yield plan
    for beneath in plan.get("Plans", ()):
        yield from nodes(beneath)


@pytest.mark.req("T1", "M6")
@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_statement_reads_what_it_is_about_and_not_the_tenant(full: asyncpg.Connection, name: str) -> None:
    read = await rows_read(full, STATEMENTS[name])
    assert all(rows <= MOST for rows in read.values()), read


@pytest.mark.req("U1")
async def test_a_conversation_is_read_by_indexes_from_its_own_rows_alone(full: asyncpg.Connection) -> None:
    tables = ["conversation", "turn_view", "stall", "message_view", "card"]
    assert await rows_read(full, STATEMENTS["conversation"]) == dict.fromkeys(tables, 1)


@pytest.fixture
async def store(shared_ground: Ground) -> AsyncGenerator[Store]:
    """The store of ingress on its own database; these tests promise nothing, so that no publisher is needed."""
    database = Database(shared_ground.postgres("ingress"), size=2)
    await database.start()
    publisher: Any = None
    yield Store(database, Outbox(database, publisher, grace=3600))
    await database.stop()


async def begin(store: Store) -> Principal:
    """Whose turn it is that the examples are about, begun in a tenant that no other test has."""
    who = Principal(f"t-{secrets.token_hex(4)}", "alice", frozenset())
    turn = TurnAccepted(
        turn_id=CARD.turn_id, conversation_id=CARD.conversation_id, principal="alice", text="hello", mandate="m"
    )
    await store.accept(who, "key", "fingerprint", turn, [])
    return who


async def move(store: Store, who: Principal, revision: int, state: TurnState, **message: Any) -> None:
    """The planner's news of a turn: its state, and one message."""
    said = MessageView(position=revision, **message)
    ids = {"turn_id": CARD.turn_id, "conversation_id": CARD.conversation_id}
    await store.apply_turn(who.tenant, TurnChanged(**ids, revision=revision, state=state, messages=(said,)))


async def seen(store: Store, who: Principal) -> str:
    """The state of the turn for who loads the page."""
    view = await store.conversation(who, CARD.conversation_id)
    assert view
    return view["state"]


@pytest.mark.req("T8")
async def test_a_turn_plans_again_when_what_was_decided_has_its_result(store: Store) -> None:
    alice = await begin(store)
    await move(store, alice, 2, "executing", role="assistant", text="I add a note")
    await store.show_card(alice.tenant, CARD)
    assert await seen(store, alice) == "awaiting_approval"
    await store.close_card(alice.tenant, DECIDED)
    assert await seen(store, alice) == "executing"
    await move(store, alice, 3, "planning", role="tool", tool_call_id=CARD.tool_call_id, outcome="succeeded")
    assert await seen(store, alice) == "planning"
    await move(store, alice, 4, "executing", role="assistant", text="Now I read it")
    assert await seen(store, alice) == "executing"


@pytest.mark.req("T8")
async def test_b22_a_decision_that_was_faster_than_the_planners_news_is_under_way(store: Store) -> None:
    alice = await begin(store)
    await store.show_card(alice.tenant, CARD)
    await store.close_card(alice.tenant, DECIDED)
    assert await seen(store, alice) == "executing"
