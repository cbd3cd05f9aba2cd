"""JSON read strictly: what two readers could understand in two ways is refused, with the path that offends (B29, A3)."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, cast

SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8259 section 6)."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_SAFE = len(str(-SAFE_INTEGER))


class UnsafeJson(ValueError):
    """The JSON is not safe to read. `code` is for machines, `path` says where (JSONPath style)."""

    def __init__(self, code: str, path: str = "$") -> None:
        self.code = code
        self.path = path.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
        super().__init__(f"{code} at {self.path}")


def strict_loads(text: bytes | str, *, max_bytes: int = 65536, max_depth: int = 32) -> Any:
    """Parse JSON, refusing duplicate keys, NaN and infinities, numbers beyond ±(2^53−1), lone surrogates, NUL, and
    documents deeper than `max_depth` or larger than `max_bytes`.

    Raises UnsafeJson with a code and the path.
    """
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(raw) > max_bytes:
        raise UnsafeJson("too_large")
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_pairs, parse_int=_integer, parse_constant=_NotANumber)
    except UnicodeDecodeError as error:
        raise UnsafeJson("not_utf8") from error
    except RecursionError as error:
        raise UnsafeJson("too_deep") from error
    except json.JSONDecodeError as error:
        raise UnsafeJson("not_json", f"offset {error.pos}") from error
    _check(value, "$", max_depth)
    return value


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Stands for an object with a repeated name until its path is known."""

    name: str


@dataclass(frozen=True, slots=True)
class _NotANumber:
    """Stands for NaN or an infinity until its path is known."""

    constant: str


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Repeated:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    return _Repeated(next(name for name, _ in pairs if name in seen or seen.add(name)))


def _integer(digits: str) -> int | float:
    """Digits beyond any safe integer need not be read: they are out of range however many there are."""
    return int(digits) if len(digits) <= _LONGEST_SAFE else math.inf


def _check(value: Any, path: str, depth: int) -> None:
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, dict):
        _check_object(cast("dict[str, Any]", value), path, depth)
    elif isinstance(value, list):
        _check_depth(path, depth)
        for index, item in enumerate(cast("list[Any]", value)):
            _check(item, f"{path}[{index}]", depth - 1)
    elif isinstance(value, int | float) and not -SAFE_INTEGER <= value <= SAFE_INTEGER:
        raise UnsafeJson("number_out_of_range", path)
    elif isinstance(value, _Repeated):
        raise UnsafeJson("duplicate_key", f"{path}.{value.name}")
    elif isinstance(value, _NotANumber):
        raise UnsafeJson("not_a_number", path)


def _check_object(found: dict[str, Any], path: str, depth: int) -> None:
    _check_depth(path, depth)
    for name, item in found.items():
        _check_text(name, path)
        _check(item, f"{path}.{name}", depth - 1)


def _check_depth(path: str, depth: int) -> None:
    if depth <= 0:
        raise UnsafeJson("too_deep", path)


def _check_text(text: str, path: str) -> None:
    if "\0" in text:
        raise UnsafeJson("nul_character", path)
    if not text.isascii() and _LONE_SURROGATE.search(text):
        raise UnsafeJson("lone_surrogate", path)
