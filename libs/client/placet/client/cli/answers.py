"""approvals, card, approve, deny: for who answers."""

from typing import Annotated, Any, Literal

import typer

from placet.client.api import Client
from placet.client.cli.access import find_access
from placet.client.cli.cards import card_lines, card_table
from placet.client.cli.forms import not_empty, readable
from placet.client.cli.leaving import REFUSED, UNREACHABLE, USAGE, Trouble, run, standing
from placet.client.cli.options import AsJson, CardId, Token, Url, Who, print_json

APPROVER = "ann"

Comment = Annotated[
    str, typer.Option("--comment", metavar="TEXT", callback=readable, help="A word on why; who asked can read it.")
]
Digest = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="D",
        callback=not_empty,
        help="Decide only about the command with this digest; without it, what is shown.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether you are sure.")]


def approvals(url: Url = None, token: Token = None, who: Who = None, as_json: AsJson = False) -> None:
    """List the cards that wait, oldest first."""

    async def work() -> None:
        async with find_access(url, token, who, APPROVER).client() as client:
            cards = [card async for card in client.approvals()]
        if as_json:
            print_json(cards)
        else:
            print("\n".join(card_table(cards)) if cards else "Nothing waits for an answer.")

    run(work())


def card(interrupt_id: CardId, url: Url = None, token: Token = None, who: Who = None, as_json: AsJson = False) -> None:
    """Show one card whole.

    What would be done, to what, what is there now, by whose wish, by which rule, until when.
    Characters that do not show, or that turn the direction of reading, are written out as \\u and their number.
    """

    async def work() -> None:
        async with find_access(url, token, who, APPROVER).client() as client:
            found = await client.approval(interrupt_id)
        if as_json:
            print_json(found)
        else:
            print("\n".join(card_lines(found)))

    run(work())


def approve(
    interrupt_id: CardId,
    comment: Comment = "",
    digest: Digest = None,
    yes: Yes = False,
    url: Url = None,
    token: Token = None,
    who: Who = None,
) -> None:
    """Let a card's call happen, once, as shown.

    Shows the card, asks whether you are sure, and answers for the digest of the card shown.

    \b
    Examples:
      placet approve apr_5Zk2...
      placet approve apr_5Zk2... --as amy --comment "agreed by phone"
      placet approve apr_5Zk2... --digest sha256:9f86... --yes
    """
    run(_answer("approve", interrupt_id, comment, digest, yes, (url, token, who)))


def deny(
    interrupt_id: CardId,
    comment: Comment = "",
    digest: Digest = None,
    yes: Yes = False,
    url: Url = None,
    token: Token = None,
    who: Who = None,
) -> None:
    """Refuse a card's call: it will not happen.

    The agent is told so, with your comment.

    \b
    Example:
      placet deny apr_5Zk2... --comment "wrong customer"
    """
    run(_answer("deny", interrupt_id, comment, digest, yes, (url, token, who)))


Decision = Literal["approve", "deny"]

_CLOSED = frozenset({"approved", "denied", "expired"})
"""States in which an answer changes nothing: it is sent all the same, to hear what stands."""


async def _answer(
    decision: Decision,
    interrupt_id: str,
    comment: str,
    digest: str | None,
    yes: bool,
    access: tuple[str | None, str | None, str | None],
) -> None:
    async with find_access(*access, APPROVER).client() as client:
        shown = await client.approval(interrupt_id)
        print("\n".join(card_lines(shown)), flush=True)
        if not yes and shown["state"] not in _CLOSED:
            _make_sure(decision)
        said = await _decided(client, interrupt_id, decision, digest or shown["digest"], comment)
    print(f"\nThe decision stands: {standing(said)}.")


def _make_sure(decision: Decision) -> None:
    try:
        sure = typer.confirm(f"\n{decision.capitalize()} this?")
    except typer.Abort as abort:
        raise Trouble(USAGE, "", "Nothing was sent: nobody answered. --yes decides without asking.") from abort
    if not sure:
        raise Trouble(REFUSED, "Nothing was sent; the card stays as it is.")


async def _decided(client: Client, interrupt_id: str, decision: Decision, digest: str, comment: str) -> dict[str, Any]:
    said = await client.decide(interrupt_id, decision, digest, comment=comment)
    if said.get("code") == "not_answered_yet":
        raise Trouble(
            UNREACHABLE,
            "Your answer is on its way, but what became of it is not known yet.",
            f"`placet card {interrupt_id}` will show it; giving the same answer again is harmless.",
        )
    return said
