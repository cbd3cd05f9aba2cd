"""What the executor does when a connector does not come to an end: the time limit stands outside of it (E9)."""

import asyncio
from typing import cast

import pytest

from placet.canonical import CanonicalCommand
from placet.contracts.commands import ResourceResolve
from placet.executor.connector import Done, Target
from placet.executor.dispatch import dispatch
from placet.executor.handlers import Handlers
from placet.messaging import Cause, NoAnswer, Publisher, Requester

NOTE = CanonicalCommand("t1", "alice", "crm.note.create", 1, "C-42", {"customer_id": "C-42", "body": "hello"}, "1")


class Silent:
    """A connector without a time limit, whose provider says nothing."""

    def replay_seconds(self, action: str) -> int | None:
        return None

    async def call(self, command: CanonicalCommand, key: str) -> Done:
        return await asyncio.get_running_loop().create_future()

    async def resolve(self, tenant: str, action: str, resource: str) -> Target | None:
        return await asyncio.get_running_loop().create_future()


@pytest.mark.req("A2", "E9")
async def test_a_target_that_cannot_be_looked_up_in_time_has_no_answer() -> None:
    requester, publisher = cast("Requester", None), cast("Publisher", None)
    handlers = Handlers(Silent(), requester, publisher, ask_seconds=1, dispatch_share=0.5, provider_seconds=0.01)
    asked = ResourceResolve(action="crm.note.create", resource="C-42")
    with pytest.raises(NoAnswer, match="did not say"):
        await handlers.on_resource_resolve(asked, Cause("executor", "msg_1", "t1", "c1", ""))


@pytest.mark.req("E4", "E9")
async def test_a_request_that_does_not_end_in_time_is_unknown_where_it_cannot_be_repeated() -> None:
    known = await dispatch(Silent(), NOTE, "op_1", seconds=30, request_seconds=0.01)
    assert (known.outcome, known.attempts, known.reason) == ("unknown", 1, "no answer within 0.01 s")
