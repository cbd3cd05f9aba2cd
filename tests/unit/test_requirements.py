"""The report of requirements and cases finds every mark and name, and every number that is named is explained."""

import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

import requirements
from requirements import CASES, LAWS, REQUIREMENTS, Entry

MARKED = """
import pytest

pytestmark = pytest.mark.req("O5")

@pytest.mark.req("T1", "P4")
def test_one(): ...

@pytest.mark.req("T2")
class TestTwo:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("F"))])
    async def test_b41_three(self, x): ...

def test_b5x_is_no_case(): ...

def helper():
    "pytest.mark.req('A1') in a text is no mark"
"""

EXPLAINED = """# Requirements
Words, and `**P1 No.**` in them.

## P. Permission
- **P4 One write.** Right id,
  right digest.
- **P6 Who.** A token (see [1](x.md#a)). *Not
  built: quorums of a role.*

Between two lists.

- **P8 "Always allow".** Later. *Not built.*
## F. Faults
- **F Cut anywhere.** And so on.
- no number
"""


def test_marks_are_found_on_functions_classes_parameters_and_modules(tmp_path: Path) -> None:
    (tmp_path / "test_marked.py").write_text(MARKED)
    (tmp_path / "no_test.py").write_text(MARKED)
    name = "test_marked.py"
    assert requirements.marks(tmp_path) == {
        "O5": [name],
        "T1": [f"{name}::test_one"],
        "P4": [f"{name}::test_one"],
        "T2": [f"{name}::TestTwo"],
        "F": [f"{name}::test_b41_three"],
    }
    assert requirements.cases(tmp_path) == {"B41": [f"{name}::test_b41_three"]}


def test_a_number_has_a_title_and_what_is_not_built_of_it(tmp_path: Path) -> None:
    (tmp_path / "explained.md").write_text(EXPLAINED)
    assert requirements.entries(tmp_path / "explained.md") == (
        Entry("P4", "One write", ""),
        Entry("P6", "Who", "quorums of a role"),
        Entry("P8", '"Always allow"', "all"),
        Entry("F", "Cut anywhere", ""),
    )


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import pytest\n@pytest.mark.req('T15')\ndef test_typo(): ...\n", "T15 is no requirement: test_typo.py::test_typo"),
        ("import pytest\n@pytest.mark.req('B41')\ndef test_typo(): ...\n", "B41 is no requirement: test_typo.py::test_typo"),
        ("async def test_b99_typo(): ...\n", "B99 is no case: test_typo.py::test_b99_typo"),
    ],
)
def test_a_number_that_no_file_explains_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: str, error: str
) -> None:
    (tmp_path / "test_typo.py").write_text(source)
    monkeypatch.setattr(requirements, "TESTS", tmp_path)
    monkeypatch.setattr(requirements, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["requirements"])
    assert requirements.main() == 1
    assert capsys.readouterr().err.splitlines() == [error]


@pytest.mark.parametrize("comment", ["a key (%s).", "a key (P4, %s)", "a key (%s: why)"])
@pytest.mark.parametrize("file", ["libs/canonical/strict.py", "services/admission/sql/decide.sql"])
def test_a_number_in_a_comment_is_found(tmp_path: Path, comment: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(comment % "B99")
    assert requirements.citations(tmp_path)["B99"] == [file]


def test_every_number_that_is_named_is_explained() -> None:
    assert list(requirements.unexplained()) == []


def test_each_number_is_explained_once_and_of_the_requirements_none_is_left_out() -> None:
    numbers = [entry.number for entry in (*REQUIREMENTS, *CASES, *LAWS)]
    assert len(numbers) == len(set(numbers))
    for letter, group in groupby((*REQUIREMENTS[:-1], *LAWS), lambda entry: entry.number[0]):
        found = [entry.number for entry in group]
        assert found == [f"{letter}{number}" for number in range(1, len(found) + 1)]
    assert REQUIREMENTS[-1].number == "F"


def test_what_is_built_is_named_by_a_test_and_what_is_not_built_by_none() -> None:
    named = requirements.marks(requirements.TESTS)
    assert [str(entry) for entry in REQUIREMENTS if not entry.lacks and entry.number not in named] == []
    assert [str(entry) for entry in REQUIREMENTS if entry.lacks == "all" and entry.number in named] == []


def test_the_report_of_this_project_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [sys.executable, requirements.__file__]
    short = subprocess.run(script, capture_output=True, text=True, timeout=60, check=True).stdout
    monkeypatch.setattr(sys, "argv", ["requirements", "--all"])
    assert requirements.main() == 0
    whole = capsys.readouterr().out
    assert f"of {len(REQUIREMENTS)} requirements" in short
    assert f"of {len(CASES)} cases" in short
    assert "\n  T10 Subagents (not built)\n" in short
    assert set(short.splitlines()) < set(whole.splitlines())
    assert "unit/test_planner_laws.py::TestConversation" in whole
    assert "unit/test_strict_json.py::test_b29_a_repeated_key_is_refused_at_its_path" in whole
