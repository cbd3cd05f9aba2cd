"""A conversation as lines: who says what, which call waits for whom, what happened."""

from typing import Any

from placet.client.api import ENDS, Event
from placet.client.cli.cards import target
from placet.client.cli.layout import labelled, left
from placet.client.cli.visible import quoted, visible

Json = dict[str, Any]

MOST_SHOWN = 300
"""Signs of a tool's result that people see; --json has all of it."""

_WHO: dict[str, str] = {"user": "you", "assistant": "agent"}


class Narrator:
    """Tells a conversation. It remembers calls by their id, so that a result can name its action, and what it said last."""

    def __init__(self) -> None:
        self._actions: dict[str, str] = {}
        self._state = ("", "")
        self._revisions: dict[str, int] = {}

    def event(self, event: Event) -> list[str]:
        """What an event tells people; nothing, if they have heard it or it is of a kind that this version does not know."""
        match event.type:
            case "turn.changed.v1":
                return self._turn(event.data)
            case "turn.stalled.v1":
                return labelled("stalled", f"{event.data['reason']}\nplacet retry {event.data['conversation_id']}")
            case "permission.requested.v1":
                return _waiting(event.data)
            case "permission.decided.v1":
                return _decided(event.data)
            case _:
                return []

    def message(self, message: Json) -> list[str]:
        """One message of the transcript."""
        if message["role"] == "tool":
            return self._result(message)
        role = str(message["role"])
        said = labelled(_WHO.get(role, role), message["text"]) if message["text"] else []
        return [*said, *(self._call(call) for call in message.get("tool_calls") or ())]

    def _turn(self, news: Json) -> list[str]:
        lines = [line for message in news["messages"] for line in self.message(message)]
        if self._is_new(news):
            reason = f": {news['reason']}" if news["reason"] else ""
            lines += labelled("ended" if news["state"] in ENDS else "state", news["state"].replace("_", " ") + reason)
        return lines

    def _is_new(self, news: Json) -> bool:
        """Whether the state is another one than that told last, and not an older one that was overtaken."""
        turn, before = news["turn_id"], self._state
        if news["revision"] <= self._revisions.get(turn, 0):
            return False
        self._revisions[turn], self._state = news["revision"], (turn, news["state"])
        return self._state != before

    def _call(self, call: Json) -> str:
        self._actions[call["tool_call_id"]] = call["action"]
        return f"{labelled('calls', call['action'])[0]} {_short(visible(call['arguments']))}"

    def _result(self, message: Json) -> list[str]:
        action = self._actions.get(message["tool_call_id"], "a call")
        return [*labelled("result", f"{action}: {message['outcome']}"), *labelled("", _short(visible(message["text"])))]


def ends(event: Event, turn_id: str) -> bool:
    """Whether the turn ends with this event."""
    return event.type == "turn.changed.v1" and event.data["turn_id"] == turn_id and event.data["state"] in ENDS


def _waiting(card: Json) -> list[str]:
    wish = f"{target(card)} waits for an approver, for {left(card['expires_at'])}"
    return labelled("waits", f"{wish}\nplacet card {card['interrupt_id']}")


def _decided(decided: Json) -> list[str]:
    by = f" by {decided['decided_by']}" if decided["decided_by"] else ""
    why = f": {quoted(decided['reason'])}" if decided["reason"] else ""
    return labelled("decided", f"{decided['action']} is {decided['decision']}{by}{why}")


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}... (--json shows all {len(text)} signs)"
