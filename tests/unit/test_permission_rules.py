"""What an answer is worth: only an explicit approval, by somebody allowed, of these very bytes, in time (P4, P5, P6, P7)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.auth import Principal
from placet.canonical import UnsafeJson, strict_loads
from placet.permission.domain import Answer, Approval, Refusal, Repeat, judge, read_answer, still_valid
from placet.permission.policy import Obligations, Policy, Rule
from question import APPROVAL, DIGEST, ODD_ANSWERS, SCOPE

OTHER = "sha256:" + "b" * 64
APPROVED = replace(APPROVAL, state="approved", decided_by="ann", decided_at=APPROVAL.expires_at)
APPROVE, DENY = Answer(decision="approve", digest=DIGEST), Answer(decision="deny", digest=DIGEST)
ANN, AMY = (Principal("t1", name, frozenset({SCOPE})) for name in ("ann", "amy"))


def policy(effect: str, action: str = "crm.note.delete") -> Policy:
    approver = Obligations() if effect == "ask" else None
    return Policy(
        name="test", rules=[Rule.model_validate({"id": "only", "effect": effect, "actions": [action], "approver": approver})]
    )


@pytest.mark.req("P5")
def test_b13_the_one_proper_answer_approves() -> None:
    answer = read_answer({"decision": "approve", "digest": DIGEST})
    assert isinstance(answer, Answer)
    assert answer.state == "approved"


@pytest.mark.req("P5")
@pytest.mark.parametrize("decision", ["deny", "cancelled"])
def test_b13_a_cancelled_answer_counts_as_a_deny(decision: str) -> None:
    answer = read_answer({"decision": decision, "digest": DIGEST})
    assert isinstance(answer, Answer)
    assert answer.state == "denied"


@pytest.mark.req("P5")
@pytest.mark.parametrize("odd", ODD_ANSWERS)
def test_b13_an_odd_answer_is_malformed_and_approves_nothing(odd: dict[str, Any]) -> None:
    refusal = read_answer({"digest": DIGEST} | odd)
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code) == (422, "malformed_answer")


@pytest.mark.req("P5")
def test_b13_the_answer_that_says_both_is_refused_before_anybody_reads_it() -> None:
    with pytest.raises(UnsafeJson, match=r"duplicate_key at \$\.decision"):
        strict_loads('{"decision":"deny","decision":"approve"}')


@pytest.mark.req("P5", "P10")
@pytest.mark.parametrize("digest", [None, "", "a" * 64, "sha256:" + "A" * 64, DIGEST + "\n", [DIGEST], 7])
def test_b13_an_approval_that_names_no_digest_is_malformed(digest: Any) -> None:
    assert isinstance(read_answer({"decision": "approve", "digest": digest}), Refusal)
    assert isinstance(read_answer({"decision": "approve"}), Refusal)


@pytest.mark.req("P5")
@pytest.mark.parametrize("answer", [None, "approve", True, 1, [{"decision": "approve", "digest": DIGEST}], [], "{}"])
def test_b13_an_answer_of_another_shape_is_malformed(answer: Any) -> None:
    assert isinstance(read_answer(answer), Refusal)


@pytest.mark.req("P5")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["approve", "deny", DIGEST]),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["decision", "digest", "comment", "x"]), inner),
    )
)
def test_b13_nothing_but_the_word_approves(answer: Any) -> None:
    read = read_answer(answer)
    approves = isinstance(read, Answer) and read.state == "approved"
    assert approves == (isinstance(read, Answer) and answer["decision"] == "approve")
    if isinstance(read, Answer):
        assert answer.keys() <= {"decision", "digest", "comment"}


@pytest.mark.req("P4")
def test_an_allowed_approver_decides_an_open_question() -> None:
    assert judge(APPROVAL, APPROVE, ANN) is APPROVE
    assert judge(APPROVAL, DENY, ANN) is DENY


def refused(approval: Approval, answer: Answer, approver: Principal) -> tuple[int, str]:
    verdict = judge(approval, answer, approver)
    assert isinstance(verdict, Refusal)
    return verdict.status, verdict.code


@pytest.mark.req("P6")
@pytest.mark.parametrize("scopes", [set[str](), {"placet:approval.read"}, {SCOPE + "r"}, {SCOPE.upper()}])
@pytest.mark.parametrize("answer", [APPROVE, DENY])
def test_without_the_scope_of_the_rule_nobody_decides(scopes: set[str], answer: Answer) -> None:
    assert refused(APPROVAL, answer, Principal("t1", "ann", frozenset(scopes))) == (403, "not_an_approver")


@pytest.mark.req("P6")
def test_a_rule_may_ask_for_a_scope_of_its_own() -> None:
    strict = replace(APPROVAL, scope="placet:payments.decide")
    assert refused(strict, APPROVE, ANN) == (403, "not_an_approver")
    assert judge(strict, APPROVE, Principal("t1", "ann", frozenset({"placet:payments.decide"}))) is APPROVE


@pytest.mark.req("P6")
def test_who_asked_cannot_approve_where_a_second_person_is_needed() -> None:
    alice = Principal("t1", "alice", frozenset({SCOPE}))
    assert refused(APPROVAL, APPROVE, alice) == (403, "second_person_required")
    assert judge(replace(APPROVAL, second_person=False), APPROVE, alice) is APPROVE


@pytest.mark.req("P4", "P6")
@pytest.mark.parametrize("word", ["deny", "cancelled"])
def test_who_asked_may_take_it_back_where_a_second_person_is_needed(word: str) -> None:
    alice = Principal("t1", "alice", frozenset({SCOPE}))
    answer = Answer.model_validate({"decision": word, "digest": DIGEST})
    assert judge(APPROVAL, answer, alice) is answer
    assert judge(replace(APPROVAL, state="denied", decided_by="alice"), answer, alice) == Repeat(200)
    assert refused(APPROVAL, answer, Principal("t1", "alice", frozenset())) == (403, "not_an_approver")


@pytest.mark.req("P4", "P10")
@pytest.mark.parametrize("state", ["pending", "approved", "denied", "expired"])
def test_b27_an_answer_about_other_bytes_decides_nothing(state: str) -> None:
    other = Answer(decision="approve", digest=OTHER)
    assert refused(replace(APPROVED, state=state), other, ANN) == (409, "digest_mismatch")


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    ("answer", "approver", "status"),
    [
        (APPROVE, ANN, 200),
        (DENY, ANN, 409),
        (APPROVE, AMY, 409),
        (DENY, AMY, 409),
    ],
)
def test_a_repeated_answer_gets_the_first_reply_and_a_loser_learns_what_stands(
    answer: Answer, approver: Principal, status: int
) -> None:
    assert judge(APPROVED, answer, approver) == Repeat(200 if status == 200 else 409)


@pytest.mark.req("P4")
def test_a_repeated_denial_is_a_repetition_too() -> None:
    denied = replace(APPROVED, state="denied")
    cancelled = Answer(decision="cancelled", digest=DIGEST)
    assert [judge(denied, answer, ANN) for answer in (DENY, cancelled, APPROVE)] == [Repeat(200), Repeat(200), Repeat(409)]


@pytest.mark.req("P4", "P7")
def test_what_was_decided_in_time_is_still_told_after_it() -> None:
    assert judge(replace(APPROVED, past=True), APPROVE, ANN) == Repeat(200)


@pytest.mark.req("P7")
@pytest.mark.parametrize("late", [replace(APPROVAL, past=True), replace(APPROVAL, state="expired", past=True)])
@pytest.mark.parametrize("answer", [APPROVE, DENY])
def test_b15_after_its_time_a_question_takes_no_answer_swept_or_not(late: Approval, answer: Answer) -> None:
    assert refused(late, answer, ANN) == (409, "expired")


@pytest.mark.req("A7", "P7")
@pytest.mark.parametrize("effect", ["allow", "ask"])
def test_an_approval_stands_while_policy_does_not_deny(effect: str) -> None:
    assert still_valid(policy(effect), APPROVED, "op_1", DIGEST) == ("valid", "")


@pytest.mark.req("A7")
@pytest.mark.parametrize(
    "approval",
    [
        None,
        APPROVAL,
        replace(APPROVED, state="denied"),
        replace(APPROVED, state="expired"),
        replace(APPROVED, digest=OTHER),
        replace(APPROVED, operation_id="op_2"),
    ],
)
def test_b33_without_an_approval_of_this_command_nothing_is_valid(approval: Approval | None) -> None:
    verdict, reason = still_valid(policy("allow"), approval, "op_1", DIGEST)
    assert verdict == "denied"
    assert reason


@pytest.mark.req("A7", "P7")
def test_b33_an_approval_whose_time_is_over_is_expired() -> None:
    assert still_valid(policy("allow"), replace(APPROVED, past=True), "op_1", DIGEST)[0] == "expired"


@pytest.mark.req("A7", "P1")
def test_b33_what_only_a_rule_approved_ends_when_the_policy_asks_a_person() -> None:
    by_rule = replace(APPROVED, decided_by=f"rule:{APPROVED.rule}")
    assert still_valid(policy("allow"), by_rule, "op_1", DIGEST)[0] == "valid"
    assert still_valid(policy("ask"), by_rule, "op_1", DIGEST)[0] == "denied"


@pytest.mark.req("A7", "P6")
@pytest.mark.parametrize(
    ("approver", "named"),
    [(Obligations(second_person=True), "a second person"), (Obligations(scope="placet:chief"), "placet:chief")],
)
def test_b33_a_policy_that_asks_more_of_the_approver_ends_what_was_approved_with_less(
    approver: Obligations, named: str
) -> None:
    rule = Rule(id="only", effect="ask", actions=[APPROVED.action], approver=approver)
    by_herself = replace(APPROVED, decided_by=APPROVED.requested_by)
    verdict, reason = still_valid(Policy(name="test", rules=[rule]), by_herself, "op_1", DIGEST)
    assert verdict == "denied"
    assert named in reason


@pytest.mark.req("A7", "P6")
def test_b33_a_second_person_s_approval_stands_when_the_policy_asks_for_one() -> None:
    rule = Rule(id="only", effect="ask", actions=[APPROVED.action], approver=Obligations(second_person=True))
    assert still_valid(Policy(name="test", rules=[rule]), APPROVED, "op_1", DIGEST) == ("valid", "")


@pytest.mark.req("A7", "P1")
@pytest.mark.parametrize("now", [policy("deny"), policy("allow", "crm.note.create"), Policy(name="empty", rules=[])])
def test_b33_a_new_policy_that_denies_ends_what_was_approved(now: Policy) -> None:
    verdict, reason = still_valid(now, APPROVED, "op_1", DIGEST)
    assert verdict == "denied"
    assert reason
