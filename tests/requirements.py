"""Which requirement and case is shown by which test: prints those that no test names, and with `--all` the tests of each.

What there is to show stands in infra/requirements.md and infra/cases.md. Tests are read from their source (the marks
`@pytest.mark.req(...)`, the names `test_bNN_...`), so that nothing has to be imported or started for it.
"""

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
PARTS = ("contracts", "infra", "libs", "services", "tests")

_ENTRY = re.compile(r"- \*\*([A-Z][0-9]*) (.+?)\.\*\* (.*)")
_LACK = re.compile(r"\*Not built(?:: (.+?))?\.\*")
_CITATION = re.compile(r"\(([TPAEMOUBG][0-9]+(?:, [TPAEMOUBG][0-9]+)*)[):]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One number, and what is said of it."""

    number: str
    title: str
    lacks: str
    """What is not built of it: `all`, or in words; empty when it is whole."""

    def __str__(self) -> str:
        lack = {"": "", "all": " (not built)"}.get(self.lacks, f" (not built: {self.lacks})")
        return f"{self.number:4}{self.title}{lack}"


def entries(file: Path) -> tuple[Entry, ...]:
    """The numbers that a file explains, in its order: list items that begin with `**P4 Title.**`."""
    items = re.split(r"\n(?=- |#|\n)", file.read_text("utf-8"))
    found = (_ENTRY.match(" ".join(item.split())) for item in items)
    return tuple(Entry(each[1], each[2], _lack(each[3])) for each in found if each)


def _lack(text: str) -> str:
    """`*Not built.*` says it of everything, `*Not built: quorums.*` of a part."""
    return lack[1] or "all" if (lack := _LACK.search(text)) else ""


REQUIREMENTS = entries(ROOT / "infra/requirements.md")
CASES = tuple(entry for entry in entries(ROOT / "infra/cases.md") if entry.number.startswith("B"))
LAWS = tuple(entry for entry in entries(ROOT / "infra/cases.md") if entry.number.startswith("G"))


def main() -> int:
    """Print the report. The status is 1 when a test or a comment names a number that is not explained."""
    options = _options()
    if errors := list(unexplained()):
        print("\n".join(errors), file=sys.stderr)
        return 1
    for what, known, found in (("requirements", REQUIREMENTS, marks(TESTS)), ("cases", CASES, cases(TESTS))):
        if options.all:
            _print_all(known, found)
        missing = [entry for entry in known if entry.number not in found]
        print(f"{len(known) - len(missing)} of {len(known)} {what} are named by a test. Not named:")
        print("\n".join(f"  {entry}" for entry in missing) or "  none")
    return 0


def unexplained() -> Iterator[str]:
    """Every number that is named and not explained, with the first place that names it."""
    for what, known, found in (
        ("requirement", REQUIREMENTS, marks(TESTS)),
        ("case", CASES, cases(TESTS)),
        ("number that is explained", (*REQUIREMENTS, *CASES, *LAWS), citations(ROOT)),
    ):
        numbers = {entry.number for entry in known}
        yield from (f"{number} is no {what}: {found[number][0]}" for number in sorted(found.keys() - numbers))


def marks(folder: Path) -> Mapping[str, list[str]]:
    """The tests that name each requirement, as `file::test`, in the order of the files."""
    return _by_number(chain.from_iterable(_marks_of(path) for path in sorted(folder.rglob("test_*.py"))))


def cases(folder: Path) -> Mapping[str, list[str]]:
    """The tests that name each case: `test_b41_...` is of B41."""
    return _by_number(chain.from_iterable(_cases_of(path) for path in sorted(folder.rglob("test_*.py"))))


def citations(root: Path) -> Mapping[str, list[str]]:
    """The files whose comments name each number: `(P4)`, `(T3, T4)` or `(B12: why)`."""
    files = (path for part in PARTS for path in sorted((root / part).rglob("*")) if path.suffix in (".py", ".sql"))
    return _by_number(chain.from_iterable(_citations_of(path, root) for path in files))


def _by_number(named: Iterator[tuple[str, str]]) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for number, where in named:
        if where not in found[number]:
            found[number].append(where)
    return found


def _marks_of(path: Path) -> Iterator[tuple[str, str]]:
    module = ast.parse(path.read_text("utf-8"), str(path))
    for number in _module_marks(module):
        yield number, _name(path)
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for number in _numbers(node.decorator_list):
                yield number, f"{_name(path)}::{node.name}"


def _module_marks(module: ast.Module) -> Iterator[str]:
    """`pytestmark = ...` marks every test of a file."""
    for node in module.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(name, ast.Name) and name.id == "pytestmark" for name in node.targets
        ):
            yield from _numbers([node.value])


def _numbers(expressions: list[ast.expr]) -> Iterator[str]:
    """The numbers in `pytest.mark.req(...)`, also inside `pytest.param(..., marks=...)`."""
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req":
                yield from (str(ast.literal_eval(argument)) for argument in node.args)


def _cases_of(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (case := re.match(r"test_b(\d+)_", node.name)):
            yield f"B{case[1]}", f"{_name(path)}::{node.name}"


def _citations_of(path: Path, root: Path) -> Iterator[tuple[str, str]]:
    for cited in _CITATION.findall(path.read_text("utf-8")):
        yield from ((number, str(path.relative_to(root))) for number in cited.split(", "))


def _name(path: Path) -> str:
    return str(path.relative_to(TESTS)) if path.is_relative_to(TESTS) else path.name


def _print_all(known: tuple[Entry, ...], found: Mapping[str, list[str]]) -> None:
    for entry in known:
        print(f"{entry}: {len(found.get(entry.number, []))}")
        for test in found.get(entry.number, []):
            print(f"    {test}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make coverage-of-requirements", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also list the tests that name each requirement and case")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
