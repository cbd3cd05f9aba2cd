"""JSON read strictly: what two readers could understand in two ways is refused, with the path that offends (B29, A3)."""

import json
import re
from typing import Any, NoReturn, cast

SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8259 section 6)."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_DUPLICATE = "\0duplicate"  # a key that no accepted document can hold: NUL is refused


class Refused(ValueError):
    """The JSON is not safe to read. `code` is for machines, `path` says where (JSONPath style)."""

    def __init__(self, code: str, path: str = "$") -> None:
        super().__init__(f"{code} at {path}")
        self.code = code
        self.path = path


def strict_loads(text: bytes | str, *, max_bytes: int = 65536, max_depth: int = 32) -> Any:
    """Parse JSON, refusing duplicate keys, NaN and infinities, numbers beyond ±(2^53−1), lone surrogates, NUL, and
    documents deeper than `max_depth` or larger than `max_bytes`.

    Raises Refused with a code and the path.
    """
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(raw) > max_bytes:
        raise Refused("too_large")
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_pairs, parse_constant=_not_a_number)
    except UnicodeDecodeError as error:
        raise Refused("not_utf8") from error
    except RecursionError as error:
        raise Refused("too_deep") from error
    except json.JSONDecodeError as error:
        raise Refused("not_json", f"offset {error.pos}") from error
    _check(value, "$", max_depth)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        found[_DUPLICATE] = next(name for name in names if names.count(name) > 1)
    return found


def _not_a_number(constant: str) -> NoReturn:
    raise Refused("not_a_number", constant)


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
        raise Refused("number_out_of_range", path)


def _check_object(found: dict[str, Any], path: str, depth: int) -> None:
    _check_depth(path, depth)
    if _DUPLICATE in found:
        raise Refused("duplicate_key", f"{path}.{found[_DUPLICATE]}")
    for name, item in found.items():
        _check_text(name, path)
        _check(item, f"{path}.{name}", depth - 1)


def _check_depth(path: str, depth: int) -> None:
    if depth <= 0:
        raise Refused("too_deep", path)


def _check_text(text: str, path: str) -> None:
    if "\0" in text:
        raise Refused("nul_character", path)
    if not text.isascii() and _LONE_SURROGATE.search(text):
        raise Refused("lone_surrogate", path)
