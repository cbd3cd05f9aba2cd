"""Cards in ingress' read model: in whatever order the news of a card comes in, its decision stays (B22)."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import pytest

from placet.auth import Principal
from placet.contracts.examples import EXAMPLES
from placet.contracts.ids import new_id
from placet.contracts.permissions import PermissionDecided, PermissionRequested
from placet.contracts.turns import TurnAccepted
from placet.ingress.store import Store
from stations import Json, Station

(CARD,) = [example for example in EXAMPLES if isinstance(example, PermissionRequested)]
(DECIDED,) = [example for example in EXAMPLES if isinstance(example, PermissionDecided)]
(ACCEPTED,) = [example for example in EXAMPLES if isinstance(example, TurnAccepted)]
ALICE = Principal("t", ACCEPTED.principal, frozenset())
BEGINNING = (datetime(2000, 1, 1, tzinfo=UTC), "")


class Desk:
    """What clients see of the one turn of a conversation, and the news of its card."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def show(self) -> bool:
        """The card arrives."""
        return await self._store.show_card("t", CARD)

    async def close(self, **but: Any) -> bool:
        """Its decision arrives."""
        return await self._store.close_card("t", DECIDED.model_copy(update=but))

    async def cards(self) -> list[tuple[str, str | None]]:
        """The cards of the conversation: state, and who decided."""
        return [(card["state"], card["decided_by"]) for card in (await self.view())["cards"]]

    async def view(self) -> Json:
        """The conversation as its owner sees it."""
        view = await self._store.conversation(ALICE, CARD.conversation_id)
        assert view
        return view

    async def open_cards(self) -> int:
        """How many cards approvers are shown."""
        return len(await self._store.cards("t", BEGINNING, 10))

    async def events(self) -> list[str]:
        """What viewers of the stream are told, in order."""
        return [event["type"] for event in await self._store.events_after("t", CARD.conversation_id, 0)]


@pytest.fixture
async def desk(station: Station) -> AsyncGenerator[Desk]:
    """An accepted turn, and no card."""
    database = await station.database("ingress")
    emptied = "truncate accepted_turn, turn_view, event, card, conversation"
    await station.execute("ingress", emptied)
    store = Store(database, await station.outbox("ingress", grace=3600))
    await store.accept(ALICE, new_id("key"), "fingerprint", ACCEPTED, [])
    yield Desk(store)
    await station.execute("ingress", emptied)


@pytest.mark.req("P4", "T1")
async def test_b22_a_decision_that_comes_before_its_card_is_not_undone_by_it(desk: Desk) -> None:
    assert await desk.close()
    assert await desk.cards() == []
    assert await desk.show()
    assert await desk.cards() == [("approved", DECIDED.decided_by)]
    assert (await desk.view())["state"] == "executing"
    assert await desk.open_cards() == 0
    assert await desk.events() == [DECIDED.wire, CARD.wire]


@pytest.mark.req("P4", "T1")
async def test_a_decision_that_comes_after_its_card_closes_it(desk: Desk) -> None:
    assert await desk.show()
    assert (await desk.view())["state"] == "awaiting_approval"
    assert await desk.open_cards() == 1
    assert await desk.close()
    assert await desk.cards() == [("approved", DECIDED.decided_by)]
    assert await desk.open_cards() == 0
    assert await desk.events() == [CARD.wire, DECIDED.wire]


@pytest.mark.req("P4", "M2")
@pytest.mark.parametrize("first", ["card", "decision"])
async def test_news_of_a_card_that_comes_again_changes_nothing(desk: Desk, first: str) -> None:
    for news in (desk.show, desk.close) if first == "card" else (desk.close, desk.show):
        assert await news()
    before = (await desk.view(), await desk.events())
    assert not await desk.show()
    assert not await desk.close()
    assert not await desk.close(decision="denied", decided_by="somebody-else")
    assert (await desk.view(), await desk.events()) == before
