"""Whether a message may still bear the version it was released under. If not, the change needs a new version beside it.

Services are deployed in any order, so old readers meet new messages and new readers meet old ones. Hence:

- An open object (events) may gain an optional field: readers ignore what they do not know. Nothing else may come or go.
- A closed message (commands) gains nothing, anywhere in it: an old reader refuses the field, as it should.
- Types, unions, formats, patterns, enums and defaults stay. An added enum value is as bad as a removed one, for readers
  are closed over the values they know.
- One loosening is accepted, for events and commands alike: a bound on size may be widened or dropped. No field changes
  its meaning, every released message stays valid, and an old reader can only refuse the larger value loudly (it is
  parked with its reason), never misread it. A required field made optional is no such thing: the old reader would lack
  what it relies on.
- What this file does not know is refused. Titles, descriptions and examples are free.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

Schema = dict[str, Any]

_FREE = {"$schema", "$id", "$defs", "$comment", "title", "description", "examples"}
_STRUCTURE = {"properties", "required", "additionalProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf"}
_UPPER = {"maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties"}
_LOWER = {"minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties"}
_STAYS = {"type", "enum", "pattern", "format", "default"}
_ANYTHING: Schema = {}
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Break:
    """An incompatible change: of which message, where (JSONPath style), against which rule."""

    message: str
    path: str
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.message} at {self.path}: {self.rule}: {self.detail}"


def breaks(message: str, released: Schema, current: Schema) -> list[Break]:
    """Every incompatible change from the released schema of a message to the current one."""
    comparison = _Comparison(message, released, current, closed=released.get("additionalProperties") is False)
    return list(comparison.compare(released, current, "$"))


class _Comparison:
    """Two documents side by side; they are kept because references point into them."""

    def __init__(self, message: str, released: Schema, current: Schema, *, closed: bool) -> None:
        self._message = message
        self._released = released
        self._current = current
        self._closed = closed
        self._inside: list[tuple[str, str]] = []

    def compare(self, old: Schema, new: Schema, path: str) -> Iterator[Break]:
        pair = (old.get("$ref", ""), new.get("$ref", ""))
        if all(pair) and pair in self._inside:  # a recursive schema brought us back
            return
        self._inside.append(pair)
        yield from self._compare(_plain(self._released, old), _plain(self._current, new), path)
        self._inside.pop()

    def _compare(self, old: Schema, new: Schema, path: str) -> Iterator[Break]:
        yield from self._keywords(old, new, path)
        yield from self._objects(old, new, path)
        for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
            yield from self._lists(keyword, old.get(keyword, []), new.get(keyword, []), path)
        if "items" in old or "items" in new:
            yield from self.compare(_schema(old.get("items")), _schema(new.get("items")), f"{path}[]")

    def _keywords(self, old: Schema, new: Schema, path: str) -> Iterator[Break]:
        for keyword in sorted((old.keys() | new.keys()) - _FREE - _STRUCTURE):
            before, after = old.get(keyword, _ABSENT), new.get(keyword, _ABSENT)
            if not _same(keyword, before, after) and not _widened(keyword, before, after):
                yield self._break(path, *_named(keyword, before, after))

    def _objects(self, old: Schema, new: Schema, path: str) -> Iterator[Break]:
        before, after = old.get("properties", {}), new.get("properties", {})
        yield from self._openness(old, new, path)
        for name in before:
            if name in after:
                yield from self.compare(_schema(before[name]), _schema(after[name]), f"{path}.{name}")
            else:
                yield self._break(f"{path}.{name}", "removed", "readers of the released version rely on the field")
        if self._closed or old.get("additionalProperties") is False:
            for name in sorted(after.keys() - before.keys()):
                yield self._break(f"{path}.{name}", "added", "a closed message takes no new field")
        yield from self._necessity(old, new, path)

    def _necessity(self, old: Schema, new: Schema, path: str) -> Iterator[Break]:
        before, after = set(old.get("required", [])), set(new.get("required", []))
        for name in sorted(after - before):
            yield self._break(f"{path}.{name}", "required", "released messages may lack the field")
        for name in sorted((before - after) & new.get("properties", {}).keys()):
            yield self._break(f"{path}.{name}", "optional", "readers of the released version require the field")

    def _openness(self, old: Schema, new: Schema, path: str) -> Iterator[Break]:
        before, after = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from self.compare(cast("Schema", before), cast("Schema", after), f"{path}.*")
        elif after is False and before is not False:
            yield self._break(path, "closed", "released messages may carry fields that would now be refused")
        elif before is False and after is not False:
            yield self._break(path, "opened", "a field that might change the meaning would be ignored")
        elif before is not after:
            yield self._break(path, "changed", "additionalProperties")

    def _lists(self, keyword: str, old: list[Schema], new: list[Schema], path: str) -> Iterator[Break]:
        if len(old) != len(new):
            yield self._break(path, "type", f"{keyword} has {len(new)} members and was released with {len(old)}")
            return
        for before, after in zip(old, new, strict=True):
            yield from self.compare(before, after, path)

    def _break(self, path: str, rule: str, detail: str) -> Break:
        return Break(self._message, path, rule, detail)


def _schema(value: Any) -> Schema:
    """A schema may also be a boolean, or missing: then it allows anything, or nothing."""
    if isinstance(value, dict):
        return cast("Schema", value)
    return {"not": {}} if value is False else _ANYTHING


def _plain(document: Schema, schema: Schema) -> Schema:
    """The schema with its reference followed, and a single value written as an enum of one."""
    while "$ref" in schema:
        target = document["$defs"][schema["$ref"].rpartition("/")[2]] if schema["$ref"] != "#" else document
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    if "const" in schema:
        schema = {**{key: value for key, value in schema.items() if key != "const"}, "enum": [schema["const"]]}
    return schema


def _same(keyword: str, before: Any, after: Any) -> bool:
    """Equality that tells 1 from true and 1.0, but does not mind the order of an enum."""
    if keyword == "enum" and isinstance(before, list) and isinstance(after, list):
        return sorted(map(_written, cast("list[Any]", before))) == sorted(map(_written, cast("list[Any]", after)))
    return _written(before) == _written(after)


def _widened(keyword: str, before: Any, after: Any) -> bool:
    if keyword not in _UPPER | _LOWER or before is _ABSENT:
        return False
    if after is _ABSENT:
        return True
    return after > before if keyword in _UPPER else after < before


def _named(keyword: str, before: Any, after: Any) -> tuple[str, str]:
    if keyword == "enum" and isinstance(before, list) and isinstance(after, list):
        return "enum", _values(cast("list[Any]", before), cast("list[Any]", after))
    rule = keyword if keyword in _STAYS else "narrowed" if keyword in _UPPER | _LOWER else "changed"
    return rule, f"{keyword} was {_written(before)} and is {_written(after)}"


def _values(before: list[Any], after: list[Any]) -> str:
    gone = [value for value in before if value not in after]
    new = [value for value in after if value not in before]
    return f"removed {gone}, added {new}: readers are closed over the values they know"


def _written(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value, sort_keys=True)
