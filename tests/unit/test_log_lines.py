"""The runbook explains every warning and error that a service can log, and no other; a line is found by one field."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNBOOK = ROOT / "infra/runbooks/log-lines.md"
SOURCES = "\n".join(
    path.read_text("utf-8") for folder in ("services", "libs") for path in (ROOT / folder).rglob("placet/**/*.py")
)
CALLS = re.findall(r"\blog\.(?:debug|info|warning|error|exception|critical)\(", SOURCES)
LINES = re.findall(r'\blog\.(\w+)\(\s*f?"([^"]+)",\s*action=f?"([^"]+)"', SOURCES)


def test_every_warning_and_error_is_explained() -> None:
    logged = {event for level, event, _ in LINES if level in ("warning", "error")}
    explained = {
        name for row in re.findall(r"^\| (`.+?) \|", RUNBOOK.read_text("utf-8"), re.M) for name in row.split("`")[1::2]
    }
    assert explained == logged


def test_every_line_names_its_event_as_its_action() -> None:
    """So that a log can be searched by one field."""
    assert len(CALLS) == len(LINES) > 0
    assert [(event, action) for _, event, action in LINES if event != action] == []
