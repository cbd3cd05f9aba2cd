"""The loop that settles what nobody answered (P7)."""

from placet.messaging import promise
from placet.permission.domain import expired
from placet.permission.handlers import decision_of
from placet.permission.store import Store


class Expiry:
    """Ends open questions whose time is over. A late answer is refused with or without it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run_once(self) -> int:
        """Settle what is due now; how many questions."""
        due = await self._store.due()
        for approval in due:
            news = decision_of(expired(approval))
            promised = promise("permission", news, tenant=approval.tenant, conversation=approval.conversation_id)
            await self._store.expire(approval, [promised])
        return len(due)
