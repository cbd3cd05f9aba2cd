"""The options that several commands have."""

import json
from typing import Annotated, Any

import typer

from placet.client.cli.forms import identifier, not_empty

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", callback=not_empty, help="Address of Placet [PLACET_URL, or the profile]."),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        callback=not_empty,
        help="Access token. PLACET_TOKEN is better: others on this machine see options.",
    ),
]
Who = Annotated[
    str | None, typer.Option("--as", metavar="NAME", callback=not_empty, help="Whose token of the profile to take.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of lines for people.")]
ConversationId = Annotated[
    str, typer.Argument(metavar="CONVERSATION", callback=identifier, help="A conversation's id: conv_...")
]
CardId = Annotated[str, typer.Argument(metavar="ID", callback=identifier, help="A card's id: apr_...")]


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """A JSON value for machines: ASCII only, so that it is as safe at a terminal as in a file."""
    print(json.dumps(value, indent=indent), flush=True)
