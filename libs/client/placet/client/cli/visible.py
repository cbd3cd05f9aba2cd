"""Texts of others at a terminal: nothing in them may hide, reorder what is read, or steer the terminal."""

import json
import unicodedata
from typing import Any

_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
"""Categories without a shape of their own: controls, bidi and other format characters, unassigned, odd spaces."""

_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
"""Letters, marks and selectors that draw nothing although their category does not say so."""


def visible(text: str, *, keep: str = "") -> str:
    r"""The text with every character that does not show written out, as `\u202e`; `keep` names those that may stay."""
    return "".join(sign if sign in keep or _shows(sign) else _escaped(sign) for sign in text)


def quoted(value: Any) -> str:
    """A JSON value on one line, its hidden characters written out. A backslash of the text is doubled, so none is faked."""
    return visible(json.dumps(value, ensure_ascii=False))


def hides(value: Any) -> bool:
    """Whether a JSON value holds characters that do not show. A line break, which JSON writes as two signs, shows."""
    plain = json.dumps(value, ensure_ascii=False)
    return visible(plain) != plain


def _shows(sign: str) -> bool:
    if sign == " ":
        return True
    if unicodedata.category(sign) in _HIDDEN or sign in _BLANK:
        return False
    return not any(first <= ord(sign) <= last for first, last in _SELECTORS)


def _escaped(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
