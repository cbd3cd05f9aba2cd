"""The report of requirements finds every mark, wherever it stands, and knows the numbers of the requirements."""

import subprocess
import sys
from pathlib import Path

import pytest

import requirements

MARKED = """
import pytest

pytestmark = pytest.mark.req("O5")

@pytest.mark.req("T1", "P4")
def test_one(): ...

@pytest.mark.req("T2")
class TestTwo:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("F"))])
    async def test_three(self, x): ...

def helper():
    "pytest.mark.req('A1') in a text is no mark"
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
        "F": [f"{name}::test_three"],
    }


def test_a_number_that_is_no_requirement_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_typo.py").write_text("import pytest\n@pytest.mark.req('T15')\ndef test_typo(): ...\n")
    monkeypatch.setattr(requirements, "TESTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["requirements"])
    assert requirements.main() == 1
    assert "T15 is no requirement: test_typo.py::test_typo" in capsys.readouterr().err


def test_the_report_of_this_project_names_what_is_missing() -> None:
    script = Path(requirements.__file__)
    short = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True).stdout
    whole = subprocess.run(
        [sys.executable, str(script), "--all"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert f"of {len(requirements.REQUIREMENTS)} requirements" in short
    assert whole.endswith(short)
    assert "unit/test_planner_laws.py::TestConversation" in whole
