"""The committed files that are made from the code: write them, compare them, release them."""

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placet.contracts import asyncapi, compat, examples, schemas, topology

DEFINITIONS = "infra/rabbitmq/definitions.json"
SCHEMAS, EXAMPLES, RELEASED = "contracts/schemas", "contracts/examples", "contracts/released"


class Refused(Exception):
    """A release cannot be made; the text says why."""


def files() -> dict[str, str]:
    """The text of every generated file, by its path from the root of the checkout."""
    made = {f"{SCHEMAS}/{name}.json": _json(schema, sort=True) for name, schema in schemas.all_schemas().items()}
    made |= {f"{EXAMPLES}/{wire}.json": _json(json.loads(body)) for wire, body in examples.golden().items()}
    made["contracts/asyncapi.yaml"] = asyncapi.rendered()
    made[DEFINITIONS] = _json(topology.definitions())
    return made


def write(root: Path) -> int:
    """Write every file, remove those of messages that are gone, and return how many there are."""
    made = files()
    for name in _committed(root) - made.keys():
        (root / name).unlink()
    for name, text in made.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return len(made)


def faults(root: Path) -> list[str]:
    """What is wrong with the committed files: hand-made edits, missing examples, incompatible changes."""
    missing = [f"{wire}: no example in contracts/placet/contracts/examples.py" for wire in examples.without_example()]
    return [*_differences(root), *missing, *map(str, incompatible(root, schemas.all_schemas()))]


def incompatible(root: Path, current: dict[str, dict[str, Any]]) -> Iterator[compat.Break]:
    """Every break between the newest release of each message and the current schemas."""
    for name, released in _newest(root).items():
        if name in current:
            yield from compat.breaks(name, released, current[name])
        elif not _succeeded(root, name):
            yield compat.Break(name, "$", "removed", "a message goes only after a release that also held its successor")


def release(root: Path, version: str) -> int:
    """Copy the schemas and examples under the version, for ever. Returns how many files that are.

    Raises Refused when something is at fault, or the version is no `1.2.3`, not newer than all others, or taken.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Refused(f"{version!r} is not of the form 1.2.3")
    if any(_order(version) <= _order(other.name) for other in _releases(root)):
        raise Refused(f"{version} is not newer than what is released; a release never changes")
    if found := faults(root):
        raise Refused("\n".join(found))
    return _copy(root, root / RELEASED / version)


def _copy(root: Path, target: Path) -> int:
    (target / "examples").mkdir(parents=True)
    for name in sorted((root / SCHEMAS).glob("*.json")):
        (target / name.name).write_text(name.read_text(encoding="utf-8"), encoding="utf-8")
    for name in sorted((root / EXAMPLES).glob("*.json")):
        (target / "examples" / name.name).write_text(name.read_text(encoding="utf-8"), encoding="utf-8")
    return len(list(target.rglob("*.json")))


def _differences(root: Path) -> Iterator[str]:
    made = files()
    for name in sorted(made.keys() | _committed(root)):
        path = root / name
        committed = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = difflib.unified_diff(
            committed.splitlines(),
            made.get(name, "").splitlines(),
            f"committed/{name}",
            f"generated/{name}",
            lineterm="",
        )
        if difference := "\n".join(lines):
            yield difference


def _committed(root: Path) -> set[str]:
    return {f"{folder}/{path.name}" for folder in (SCHEMAS, EXAMPLES) for path in (root / folder).glob("*.json")}


def _newest(root: Path) -> dict[str, dict[str, Any]]:
    newest: dict[str, dict[str, Any]] = {}
    for folder in _releases(root):
        newest |= {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    return dict(sorted(newest.items()))


def _succeeded(root: Path, name: str) -> bool:
    """Whether a later version of the message stands in the newest release, so that everybody can have moved to it."""
    stem, _, version = name.rpartition(".v")
    siblings = [path.stem.rpartition(".v") for path in _releases(root)[-1].glob("*.json")]
    return any(other == stem and int(later) > int(version) for other, _, later in siblings if later.isdigit())


def _releases(root: Path) -> list[Path]:
    """The releases, oldest first."""
    return sorted((path for path in (root / RELEASED).glob("*") if path.is_dir()), key=lambda path: _order(path.name))


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _json(value: Any, *, sort: bool = False) -> str:
    return json.dumps(value, indent=2, sort_keys=sort, ensure_ascii=False) + "\n"
