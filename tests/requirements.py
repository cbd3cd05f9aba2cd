"""Which requirement is shown by which test: prints the numbers that no test names, and with `--all` the tests of each.

Reads the `@pytest.mark.req(...)` marks from the source, so that nothing has to be imported or started for it.
"""

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).resolve().parent
COUNTS = {"T": 14, "P": 14, "A": 13, "E": 9, "M": 6, "O": 5, "U": 7}
REQUIREMENTS = (*(f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)), "F")


def main() -> int:
    """Print the report. The status is 1 when a mark names a number that is no requirement."""
    options = _options()
    found = marks(TESTS)
    if unknown := sorted(found.keys() - set(REQUIREMENTS)):
        print("\n".join(f"{number} is no requirement: {found[number][0]}" for number in unknown), file=sys.stderr)
        return 1
    if options.all:
        _print_all(found)
    missing = [number for number in REQUIREMENTS if number not in found]
    print(f"{len(REQUIREMENTS) - len(missing)} of {len(REQUIREMENTS)} requirements are named by a test.")
    print(f"Not named: {' '.join(missing) or 'none'}")
    return 0


def marks(folder: Path) -> Mapping[str, list[str]]:
    """The tests that name each number, as `file::test`, in the order of the files."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        for number, test in _marks_of(path):
            if test not in found[number]:
                found[number].append(test)
    return found


def _marks_of(path: Path) -> Iterator[tuple[str, str]]:
    module = ast.parse(path.read_text("utf-8"), str(path))
    name = str(path.relative_to(TESTS)) if path.is_relative_to(TESTS) else path.name
    for number in _module_marks(module):
        yield number, name
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for number in _numbers(node.decorator_list):
                yield number, f"{name}::{node.name}"


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


def _print_all(found: Mapping[str, list[str]]) -> None:
    for number in REQUIREMENTS:
        print(f"{number}: {len(found.get(number, []))}")
        for test in found.get(number, []):
            print(f"    {test}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make coverage-of-requirements", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also list the tests that name each requirement")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
