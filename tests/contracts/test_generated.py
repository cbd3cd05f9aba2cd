"""What is committed is what the code makes, and a hand that touches it is noticed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from placet.contracts import examples, generated
from placet.contracts.__main__ import CHECKOUT, main
from placet.contracts.schemas import all_schemas

FACT, WISH = "command.ready.v1", "claim.requested.v1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout in which everything is as generated and 1.0.0 is released."""
    generated.write(tmp_path)
    generated.release(tmp_path, "1.0.0")
    return tmp_path


def edit(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields, indent=2))


def broken(root: Path, current: dict[str, dict[str, Any]]) -> list[str]:
    return [f"{found.message} {found.path} {found.rule}" for found in generated.incompatible(root, current)]


@pytest.mark.req("M1")
def test_the_committed_contracts_are_what_the_code_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0, capsys.readouterr().out


@pytest.mark.req("M1")
def test_the_checkout_holds_a_release() -> None:
    assert list((CHECKOUT / generated.RELEASED).glob("*/envelope.json"))


@pytest.mark.req("M1")
@pytest.mark.parametrize(
    "name",
    [f"contracts/schemas/{FACT}.json", f"contracts/examples/{FACT}.json", "infra/rabbitmq/definitions.json"],
)
def test_an_edit_by_hand_is_shown_as_a_difference(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    edit(root / name, by_hand=True)
    assert main(["--root", str(root), "check"]) == 1
    shown = capsys.readouterr().out
    assert f"--- committed/{name}" in shown
    assert '-  "by_hand": true' in shown


@pytest.mark.req("M1")
def test_a_lost_file_and_a_file_too_many_are_differences_that_writing_mends(root: Path) -> None:
    (root / "contracts/asyncapi.yaml").unlink()
    shutil.copy(root / f"contracts/schemas/{FACT}.json", root / "contracts/schemas/thing.gone.v1.json")
    assert [fault.splitlines()[0] for fault in generated.faults(root)] == [
        "--- committed/contracts/asyncapi.yaml",
        "--- committed/contracts/schemas/thing.gone.v1.json",
    ]
    generated.write(root)
    assert generated.faults(root) == []


@pytest.mark.req("M1")
def test_a_message_without_an_example_is_a_fault(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tuple(example for example in examples.EXAMPLES if example.wire != FACT)
    monkeypatch.setattr(examples, "EXAMPLES", kept)
    generated.write(root)
    assert generated.faults(root) == [f"{FACT}: no example in contracts/placet/contracts/examples.py"]


@pytest.mark.req("M1")
def test_current_messages_are_compared_with_the_newest_release_of_each(root: Path) -> None:
    newer = root / generated.RELEASED / "1.10.0"  # newer than 1.9.0, though not in the order of letters
    (root / generated.RELEASED / "1.9.0").mkdir()
    newer.mkdir()
    shutil.copy(root / f"contracts/schemas/{WISH}.json", newer)
    edit(newer / f"{WISH}.json", required=[])
    assert broken(root, all_schemas()) == [f"{WISH} $.operation_id required", f"{WISH} $.worker required"]


@pytest.mark.req("M1")
def test_a_released_message_goes_only_after_a_release_with_its_successor(root: Path) -> None:
    current = all_schemas()
    del current[FACT]
    assert broken(root, current) == [f"{FACT} $ removed"]
    shutil.copy(root / f"contracts/schemas/{FACT}.json", root / generated.RELEASED / "1.0.0" / "command.ready.v2.json")
    assert f"{FACT} $ removed" not in broken(root, current)


@pytest.mark.req("M1")
@pytest.mark.parametrize(("version", "why"), [("1.0.0", "not newer"), ("0.9.0", "not newer"), ("2", "not of the form")])
def test_a_release_never_changes(root: Path, version: str, why: str) -> None:
    with pytest.raises(generated.Refused, match=why):
        generated.release(root, version)


@pytest.mark.req("M1")
def test_a_release_is_made_of_committed_files_without_faults_only(root: Path) -> None:
    edit(root / f"contracts/schemas/{FACT}.json", by_hand=True)
    with pytest.raises(generated.Refused, match="by_hand"):
        generated.release(root, "1.1.0")
    assert main(["--root", str(root), "release", "1.1.0"]) == 1
    generated.write(root)
    assert main(["--root", str(root), "release", "1.1.0"]) == 0
