"""Cards as lines: everything that a person must know to decide, and nothing that could deceive."""

from collections.abc import Sequence
from typing import Any

from placet.client.cli.layout import LABEL, left, moment, table
from placet.client.cli.visible import hides, quoted, visible

Json = dict[str, Any]

_HIDDEN = "texts of this card hold characters that do not show; they are written out here, as \\u202e"


def card_lines(card: Json) -> list[str]:
    """The whole card (P3)."""
    facts = [
        ("id", visible(card["interrupt_id"])),
        ("state", _state(card)),
        ("action", visible(card["action"])),
        ("resource", _resource(card)),
        *_members("arguments", card["arguments"]),
        *_members("there now", card["current"]),
        ("asked by", visible(card["requested_by"])),
        ("turn", visible(f"{card['turn_id']} of {card['conversation_id']}")),
        ("risk", visible(card["risk"])),
        ("rule", visible(card["rule"])),
        ("policy", visible(card["policy_version"])),
        ("digest", visible(card["digest"])),
        ("expires", f"{moment(card['expires_at'])} ({left(card['expires_at'])}{_still(card)})"),
    ]
    warning = [("mind", _HIDDEN)] if hides([card["arguments"], card["current"], card["resource"]]) else []
    return [visible(card["summary"]), *(f"  {label:<{LABEL}} {text}" for label, text in [*facts, *warning])]


def card_table(cards: Sequence[Json]) -> list[str]:
    """Open cards, one a line."""
    rows = [
        [card["interrupt_id"], card["action"], card["resource"] or "-", card["requested_by"], left(card["expires_at"])]
        for card in cards
    ]
    return table(["ID", "ACTION", "RESOURCE", "ASKED BY", "EXPIRES IN"], rows)


def conversation_cards(entries: Sequence[Json]) -> list[str]:
    """The cards of a conversation with what became of them."""
    rows = [
        [
            entry["card"]["interrupt_id"],
            entry["state"],
            entry["card"]["action"],
            entry["card"]["resource"] or "-",
            _fate(entry),
        ]
        for entry in entries
    ]
    return table(["CARD", "STATE", "ACTION", "RESOURCE", "DECIDED BY, OR EXPIRES IN"], rows)


def target(card: Json) -> str:
    """What would be done, and to what, in a few words."""
    return visible(f"{card['action']} on {card['resource']}" if card["resource"] else str(card["action"]))


def _fate(entry: Json) -> str:
    if entry["state"] == "pending":
        return left(entry["card"]["expires_at"])
    return entry["decided_by"] or "nobody"


def _state(card: Json) -> str:
    by = f" by {card['decided_by']}" if card.get("decided_by") else ""
    return visible(f"{card['state']}{by}") + (f": {quoted(card['reason'])}" if card.get("reason") else "")


def _resource(card: Json) -> str:
    if not card["resource"]:
        return "none in particular"
    return visible(card["resource"]) + (
        f" at revision {visible(card['expected_revision'])}" if card["expected_revision"] else ""
    )


def _members(label: str, members: Json | None) -> list[tuple[str, str]]:
    if not members:
        return [(label, "nothing" if members is None else "none")]
    width = max(len(visible(name)) for name in members)
    lines = [f"{visible(name):<{width}}  {quoted(value)}" for name, value in members.items()]
    return [(label if index == 0 else "", line) for index, line in enumerate(lines)]


def _still(card: Json) -> str:
    return "" if left(card["expires_at"]) == "past" else " left"
