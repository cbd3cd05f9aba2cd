"""How a command ends: its exit codes, and a word on what to do when it did not do what was asked."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import httpx2
import typer

from placet.client.api import Refused
from placet.client.cli.reasons import why_unreachable
from placet.client.cli.visible import visible

REFUSED, USAGE, UNREACHABLE, LEFT = 1, 2, 3, 130
"""Exit codes besides 0. LEFT is Ctrl-C, as shells have it."""

T = TypeVar("T")

_ADVICE = {
    "invalid_token": "Take a fresh token. Those of a profile live for 12 hours; `make up` writes new ones.",
    "token_required": "Put a token into PLACET_TOKEN, or run `make up`, which writes a profile.",
    "scope_missing": "Choose somebody who may with --as, or take a token with that scope.",
    "not_an_approver": "Choose an approver with --as, or take a token with that scope.",
    "second_person_required": "The card stays open: only somebody else can approve it; you can deny it.",
    "digest_mismatch": "Nothing was decided. Look at the card again: `placet card ID`.",
    "expired": "It was not executed. It may be asked for again in a new turn.",
    "turn_in_progress": "Follow it with `placet watch`, or leave --conversation away to begin another one.",
    "idempotency_key_reused": "Take another --key for another text.",
    "not_found": "Look at the id; others' conversations, and what belongs to another tenant, are not shown either.",
}


class Trouble(Exception):
    """Why a command cannot go on: its exit code, and lines for people."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__(*lines)
        self.code, self.lines = code, lines


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do the work of a command; whatever ends it early becomes an exit code and a line or two on stderr."""
    try:
        return asyncio.run(work)
    except Trouble as trouble:
        leave(trouble)
    except Refused as refused:
        leave(Trouble(REFUSED, *explain(refused)))
    except httpx2.InvalidURL:
        leave(Trouble(USAGE, "The address is not a URL."))
    except httpx2.HTTPError as error:
        leave(unreachable(error))
    except KeyboardInterrupt:
        leave(Trouble(LEFT, "Left. What was asked for goes on without you."))


def leave(trouble: Trouble) -> NoReturn:
    """End the command."""
    for line in trouble.lines:
        print(line, file=sys.stderr)
    raise typer.Exit(trouble.code)


def unreachable(error: httpx2.HTTPError) -> Trouble:
    """The API could not be asked, or did not answer."""
    at = f" at {error.request.url.scheme}://{error.request.url.netloc.decode()}" if _has_request(error) else ""
    return Trouble(
        UNREACHABLE,
        f"Placet{at} cannot be reached: {why_unreachable(error)}.",
        "Is it running, and is the address right? `make up` starts it here; see --url.",
    )


def explain(refused: Refused) -> list[str]:
    """A problem of the API in one or two lines."""
    if refused.code == "already_decided":
        return [f"Decided already: {standing(refused.problem)}. That stands."]
    title = str(refused.problem.get("title") or refused.code.replace("_", " ") or f"HTTP {refused.status}")
    detail = str(refused.problem.get("detail", ""))
    advice = _ADVICE.get(refused.code)
    return [visible(f"Refused ({title}): {detail}" if detail else f"Refused: {title}"), *([advice] if advice else [])]


def standing(decision: dict[str, Any]) -> str:
    """The decision that stands, as the API tells it."""
    by = f" by {decision['decided_by']}" if decision.get("decided_by") else ""
    at = f" at {str(decision['decided_at'])[:19].replace('T', ' ')} UTC" if decision.get("decided_at") else ""
    return visible(f"{decision.get('state', 'it is open')}{by}{at}")


def _has_request(error: httpx2.HTTPError) -> bool:
    try:
        return bool(error.request.url.host)
    except RuntimeError:
        return False
