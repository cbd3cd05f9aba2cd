"""Words and times in columns. Plain text: it reads the same at a terminal, in a pipe and in a report."""

from collections.abc import Sequence
from datetime import UTC, datetime

from placet.client.cli.visible import visible

LABEL = 11


def labelled(label: str, text: str) -> list[str]:
    """A text of somebody behind a label, its further lines beneath its first."""
    first, *more = visible(text, keep="\n").split("\n")
    return [f"{label:<{LABEL}} {first}".rstrip(), *(f"{'':<{LABEL}} {line}".rstrip() for line in more)]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows under their headings, each column as wide as it must be."""
    shown = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *shown, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in (headings, *shown)
    ]


def moment(text: str) -> str:
    """A point in time of the API, in UTC and to the second."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def left(text: str) -> str:
    """How long it is until a point in time, by this machine's clock: its two largest units."""
    seconds = int((datetime.fromisoformat(text) - datetime.now(UTC)).total_seconds())
    if seconds <= 0:
        return "past"
    amounts = {"d": seconds // 86400, "h": seconds // 3600 % 24, "min": seconds // 60 % 60, "s": seconds % 60}
    units = list(amounts)
    first = next(index for index, unit in enumerate(units) if amounts[unit])
    return " ".join(f"{amounts[unit]} {unit}" for unit in units[first : first + 2])
