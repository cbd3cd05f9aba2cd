"""The policy: deny over ask over allow, nothing without a rule, and no mistake in the file opens a gate (P1, P11, B13)."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from placet.contracts.actions import ACTIONS
from placet.permission.domain import NO_RULE, Ask, Decided, decide
from placet.permission.policy import Obligations, Policy, load_policy
from placet.permission.settings import SHIPPED_POLICY
from placet.service.documents import BadDocument

DENY = "{id: never, effect: deny, actions: [crm.note.create], reason: not for agents}"
ASK = "{id: ask-first, effect: ask, risk: high, actions: [crm.note.create], approver: {second_person: true}}"
ALLOW = "{id: fine, effect: allow, actions: [crm.note.create]}"
ASKED = Ask("ask-first", "high", Obligations(second_person=True))


def policy(*rules: str, name: str = "test") -> Policy:
    return Policy.model_validate(yaml.safe_load(f"name: {name}\nrules: [{','.join(rules)}]"))


def why_bad(tmp_path: Path, text: str | bytes) -> str:
    """What a policy file with a mistake is refused with."""
    file = tmp_path / "policy.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadDocument) as caught:
        load_policy(file)
    return str(caught.value)


@pytest.mark.req("P1")
@pytest.mark.parametrize("rules", [(DENY, ASK, ALLOW), (ALLOW, ASK, DENY), (ALLOW, DENY), (ASK, DENY)])
def test_a_deny_rule_wins_wherever_it_stands(rules: tuple[str, ...]) -> None:
    assert decide(policy(*rules), "crm.note.create") == Decided("denied", "never", "not for agents")


@pytest.mark.req("P1")
@pytest.mark.parametrize("rules", [(ASK, ALLOW), (ALLOW, ASK), (ASK,)])
def test_what_must_be_asked_is_asked_even_if_another_rule_allows_it(rules: tuple[str, ...]) -> None:
    assert decide(policy(*rules), "crm.note.create") == ASKED


@pytest.mark.req("P1")
def test_what_only_an_allow_rule_names_is_allowed() -> None:
    assert decide(policy(ALLOW), "crm.note.create") == Decided("approved", "fine", "")


@pytest.mark.req("P1", "P5")
@pytest.mark.parametrize("action", ["crm.note.delete", "crm.note", "crm.note.create.more", "CRM.NOTE.CREATE", "", "*"])
def test_b13_an_action_with_no_rule_is_never_allowed(action: str) -> None:
    verdict = decide(policy(ALLOW, ASK), action)
    assert isinstance(verdict, Decided)
    assert (verdict.decision, verdict.rule) == ("denied", NO_RULE)
    assert action in verdict.reason


@pytest.mark.req("P1")
def test_a_policy_without_rules_denies_everything() -> None:
    assert all(isinstance(decide(policy(), action), Decided) for action in ACTIONS)
    assert {decide(policy(), action).rule for action in ACTIONS} == {NO_RULE}


@pytest.mark.req("P5", "P11")
@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ("{id: gate, efect: ask, actions: [crm.note.delete], approver: {}}", "efect"),
        ("{id: gate, effect: ask, actions: [], approver: {}}", "rules.0.actions"),
        ("{id: gate, effect: ask, actions: [crm.note.delte], approver: {}}", "crm.note.delte"),
        ("{id: gate, effect: ask, actions: [crm.note.delete], approver: {secnd_person: true}}", "secnd_person"),
        ("{id: gate, effect: ask, actions: [crm.note.delete], approver: {second_person: 'no'}}", "second_person"),
        ("{id: gate, effect: ask, actions: [crm.note.delete], approver: {expires_in_seconds: 0}}", "expires_in_seconds"),
        ("{id: gate, effect: ask, actions: [crm.note.delete]}", "approver"),
        ("{id: gate, effect: allow, actions: [crm.note.delete], approver: {}}", "approver"),
        ("{id: gate, effect: Ask, actions: [crm.note.delete], approver: {}}", "rules.0.effect"),
        ("{id: gate, actions: [crm.note.delete]}", "rules.0.effect"),
        ("{id: gate, effect: allow, actions: ['*']}", "'*'"),
        ("{id: no, effect: deny, actions: [crm.note.delete]}", "rules.0.id"),
    ],
)
def test_b13_a_mistake_in_a_rule_stops_the_service_with_the_key_in_the_message(
    tmp_path: Path, rule: str, named: str
) -> None:
    assert named in why_bad(tmp_path, f"name: test\nrules: [{rule}]")


@pytest.mark.req("P5", "P6", "P11")
@pytest.mark.parametrize("scope", ["", " ", "a b", "a\n", 'a"b', "a\\b", "a\tb", "caf\xe9", "\x7f", 7, None, ["a"]])
def test_b13_a_scope_that_no_token_can_hold_stops_the_service(tmp_path: Path, scope: Any) -> None:
    rule = {"id": "gate", "effect": "ask", "actions": ["crm.note.delete"], "approver": {"scope": scope}}
    assert "rules.0.approver.scope" in why_bad(tmp_path, json.dumps({"name": "test", "rules": [rule]}))


@pytest.mark.req("P6")
@pytest.mark.parametrize("scope", ["placet:approval.decide", "!", "https://acme.example/decide?x=#1", "[a]", "~"])
def test_a_rule_may_ask_for_any_scope_that_a_token_can_hold(scope: str) -> None:
    assert Obligations(scope=scope).scope == scope


@pytest.mark.req("P5", "P11")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "$"),
        ("- rules", "$"),
        ("name: test", "rules"),
        ("rules: []", "name"),
        ("name: test\nruls: []", "ruls"),
        (f"name: test\nrules: [{DENY}, {DENY}]", "never"),
        (f"name: test\nrules: [{DENY}]\nrules: [{ALLOW}]", "rules"),
        ("name: test\nrules: [{id: x, effect: deny, actions: [crm.export], effect: allow}]", "effect"),
        ("name: [", "line 1"),
        (b"name: \xff\xfe", "utf-8"),
    ],
)
def test_b13_a_file_that_is_no_policy_is_refused_by_name(tmp_path: Path, text: str | bytes, named: str) -> None:
    assert named in why_bad(tmp_path, text)


@pytest.mark.req("P11")
def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDocument, match="gone"):
        load_policy(tmp_path / "gone.yaml")


@pytest.mark.req("P11")
def test_the_version_changes_with_the_content_and_with_nothing_else(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(f"name: test\nrules:\n  - {ASK}\n")
    other.write_text(
        "# a comment\nrules:\n  - approver: {second_person: true}\n    actions: ['crm.note.create']\n"
        "    risk: high\n    effect: ask\n    id: ask-first\nname: test\n"
    )
    assert load_policy(one).version == load_policy(other).version


@pytest.mark.req("P11")
def test_every_change_of_content_is_another_version() -> None:
    policies = [
        policy(ASK),
        policy(ASK, name="test-2"),
        policy(ASK, ALLOW),
        policy(ALLOW, ASK),
        policy(ASK.replace("risk: high", "risk: low")),
        policy(ASK.replace("true", "false")),
        policy(ASK.replace("create", "delete")),
        policy(),
    ]
    assert len({each.version for each in policies}) == len(policies)
    assert policies[0].version.startswith("test@sha256:")


@pytest.mark.req("P1", "P11")
def test_the_shipped_policy_knows_an_answer_for_each_action() -> None:
    shipped = load_policy(Path(SHIPPED_POLICY))
    assert {action: decide(shipped, action).rule for action in ACTIONS} == {
        "crm.customer.get": "reading-is-fine",
        "crm.note.create": "notes-need-a-second-person",
        "crm.note.delete": "deletion-needs-a-second-person",
        "crm.export": "export-never",
    }
