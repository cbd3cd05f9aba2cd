"""Each distribution says what it imports: a dependency that only a neighbour brings would go away with the neighbour."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = [ROOT / "contracts", *sorted((ROOT / "libs").iterdir()), *sorted((ROOT / "services").iterdir())]
DISTRIBUTIONS = [member for member in MEMBERS if (member / "pyproject.toml").is_file()]
PROVIDERS = packages_distributions()

each_distribution = pytest.mark.parametrize("member", DISTRIBUTIONS, ids=lambda member: member.name)


def plain(requirement: str) -> str:
    """The name of a requirement, without extras and versions."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def declared(member: Path) -> set[str]:
    """The requirements of a distribution, its own extras included."""
    project = tomllib.loads((member / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {}).values()
    return {plain(requirement) for requirement in [*project["dependencies"], *(one for extra in extras for one in extra)]}


def imported_modules(member: Path) -> Iterator[str]:
    for file in (member / "placet").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield node.module
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


def providers(module: str) -> set[str]:
    """The distributions any of which may be declared for this import; none for the standard library."""
    top, *rest = module.split(".")
    if top == "placet":
        return {f"placet-{rest[0]}"}
    return set() if top in sys.stdlib_module_names else {plain(name) for name in PROVIDERS[top]}


@pytest.mark.req("E1")
@each_distribution
def test_a_distribution_declares_what_it_imports(member: Path) -> None:
    own = {f"placet-{member.name}"}
    needed = [providers(module) for module in set(imported_modules(member))]
    assert [one for one in needed if one and not one & (declared(member) | own)] == []


@pytest.mark.req("E1")
@each_distribution
def test_a_neighbour_comes_from_the_workspace_and_not_from_a_registry(member: Path) -> None:
    sources = tomllib.loads((member / "pyproject.toml").read_text()).get("tool", {}).get("uv", {}).get("sources", {})
    assert {name for name in declared(member) if name.startswith("placet-")} == sources.keys()
    assert all(source == {"workspace": True} for source in sources.values())
