"""The demonstration: it answers 0 when all that it claims held, and else 1 with each claim that did not (U5)."""

from pathlib import Path

import pytest

from placet.local.backing import Backing
from placet.local.demo import run_demo

CLAIMS = 16
"""So many are made on the way: a demonstration that shows less is another one."""

LAX = """
name: lax
rules:
  - { id: export-for-all, effect: allow, actions: [crm.export] }
  - { id: notes-are-asked, effect: ask, actions: [crm.note.create], approver: { second_person: true } }
  - { id: deletion-is-asked, effect: ask, actions: [crm.note.delete], approver: { second_person: true } }
  - { id: reading-is-fine, effect: allow, actions: [crm.customer.get] }
"""


@pytest.mark.req("U5", "T1", "O1")
async def test_the_demonstration_ends_well_when_everything_holds(
    backing: Backing, capsys: pytest.CaptureFixture[str]
) -> None:
    status = await run_demo(backing)
    said = capsys.readouterr().out
    assert (status, "Everything held." in said, "THIS DID NOT HOLD" in said) == (0, True, False), said
    assert said.count("✓") == CLAIMS


@pytest.mark.req("U5")
async def test_the_demonstration_fails_and_names_what_did_not_hold_when_a_rule_lets_the_export_through(
    backing: Backing, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(LAX)
    status = await run_demo(backing, {"permission": {"PLACET_POLICY_FILE": str(policy)}})
    said = capsys.readouterr().out
    assert status == 1, said
    ending = said.rpartition("2 claims did not hold:")[2]
    assert [line.strip() for line in ending.strip().splitlines()] == [
        "denied by the rule, without a card",
        "the provider was asked neither to delete nor to export",
    ], said
