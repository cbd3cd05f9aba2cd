"""What the demonstration tells: a claim that does not hold is said where it fails, and again at the end (U5)."""

import pytest

from placet.local.told import Told

pytestmark = pytest.mark.req("U5")


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def test_claims_that_did_not_hold_are_named_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told()
    told.check("water is wet", True)
    told.check("pigs fly", False)
    await told.check_soon("hens fly", no, within=0)
    await told.check_soon("gulls fly", yes)
    assert told.end() == 1
    said = capsys.readouterr().out
    ending = said.rpartition("2 claims did not hold:")[2].split("\n")
    assert [line.strip() for line in ending if line] == ["pigs fly", "hens fly"]
    assert [line.strip() for line in said.splitlines()][:4] == [
        "✓ water is wet",
        "✗ THIS DID NOT HOLD: pigs fly",
        "✗ THIS DID NOT HOLD: hens fly",
        "✓ gulls fly",
    ]


def test_when_everything_held_it_says_so_and_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told()
    told.check("water is wet", True)
    assert told.end() == 0
    said = capsys.readouterr().out
    assert "Everything held." in said
    assert "make up" in said
