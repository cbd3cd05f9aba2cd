"""What everybody is told of a question that is decided: by a person, by a rule or by time (P1, P4, P7)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import pytest

from placet.auth import Principal, Verifier
from placet.contracts.permissions import DecisionAnswered, DecisionRelayed
from placet.messaging import Cause, Promise
from placet.permission.domain import Approval, expired
from placet.permission.handlers import Handlers, decision_of
from placet.permission.policy import Policy
from placet.permission.store import Store
from question import APPROVAL, DIGEST, SCOPE

NOW = APPROVAL.expires_at


class Rows:
    """One question, as the store would keep it. `meanwhile` is what somebody else makes of it just before we write."""

    def __init__(self, meanwhile: Approval | None = None) -> None:
        self.kept, self._meanwhile = APPROVAL, meanwhile
        self.promised: list[Promise] = []

    async def approval(self, tenant: str, interrupt_id: str) -> Approval | None:
        return self.kept if (tenant, interrupt_id) == ("t1", "apr_1") else None

    async def decide(self, decided: Approval, promises: Sequence[Promise]) -> datetime | None:
        if self._meanwhile:
            self.kept = self._meanwhile
            return None
        self.kept = replace(decided, decided_at=NOW)
        self.promised += promises
        return NOW


class Knows:
    """A verifier to whom the token is the name."""

    async def verify(self, token: str) -> Principal:
        return Principal("t1", token, frozenset({SCOPE}))


async def answered(rows: Rows, name: str, decision: str) -> DecisionAnswered:
    """What somebody is told who answers."""
    policy, verifier = Policy(name="test", rules=[]), cast("Verifier", Knows())
    answer = {"decision": decision, "digest": DIGEST, "comment": f"a word of {name}"}
    relayed = DecisionRelayed(interrupt_id="apr_1", answer=answer, authorization=name)
    handlers = Handlers(cast("Store", rows), policy, verifier)
    return cast(
        "DecisionAnswered", await handlers.on_decision_relayed(relayed, Cause("permission", "msg_1", "t1", "c1", ""))
    )


@pytest.mark.req("P4", "P6")
@pytest.mark.parametrize(("name", "decision", "state"), [("ann", "approve", "approved"), ("alice", "deny", "denied")])
async def test_an_answer_that_decides_is_told_to_its_giver_and_promised_to_everybody(
    name: str, decision: str, state: str
) -> None:
    rows = Rows()
    told = await answered(rows, name, decision)
    assert (told.status, told.code, told.state, told.decided_by, told.decided_at) == (200, "decided", state, name, NOW)
    (promised,) = rows.promised
    news = json.loads(promised.body)["data"]
    assert (promised.wire, news["decision"], news["decided_by"]) == ("permission.decided.v1", state, name)
    assert news["reason"] == f"a word of {name}"


@pytest.mark.req("P4")
async def test_who_comes_second_is_told_what_stands() -> None:
    first = replace(APPROVAL, state="denied", decided_by="amy", decided_at=NOW)
    rows = Rows(meanwhile=first)
    told = await answered(rows, "ann", "approve")
    assert (told.status, told.code, told.state, told.decided_by) == (409, "already_decided", "denied", "amy")
    assert rows.promised == []


@pytest.mark.req("P7")
async def test_who_comes_after_the_time_decides_nothing() -> None:
    told = await answered(Rows(meanwhile=replace(APPROVAL, past=True)), "ann", "approve")
    assert (told.status, told.code, told.state) == (409, "expired", None)


@pytest.mark.req("P7")
def test_time_decides_for_nobody_and_says_that_nothing_was_done() -> None:
    news = decision_of(expired(APPROVAL))
    assert (news.decision, news.decided_by) == ("expired", "")
    assert "not executed" in news.reason


@pytest.mark.req("P1")
@pytest.mark.parametrize("state", ["approved", "denied"])
def test_what_a_rule_decides_is_told_with_the_rule_and_its_reason(state: Any) -> None:
    news = decision_of(replace(APPROVAL, state=state, decided_by="rule:notes", comment="why"))
    assert (news.decision, news.decided_by, news.rule, news.reason) == (state, "rule:notes", APPROVAL.rule, "why")


@pytest.mark.req("P5")
@pytest.mark.parametrize("state", ["pending", "withdrawn"])
def test_b13_a_question_that_nobody_has_decided_is_told_as_no_decision(state: Any) -> None:
    with pytest.raises(ValueError, match=f"{state}, which is no decision"):
        decision_of(replace(APPROVAL, state=state))
