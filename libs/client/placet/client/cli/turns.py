"""submit, watch, show, retry: for who asks."""

import secrets
from typing import Annotated, Any

import httpx2
import typer

from placet.client.api import Client
from placet.client.cli.access import find_access
from placet.client.cli.cards import conversation_cards
from placet.client.cli.following import tell
from placet.client.cli.forms import identifier, readable, request_key
from placet.client.cli.layout import labelled
from placet.client.cli.leaving import Trouble, run, unreachable
from placet.client.cli.options import AsJson, ConversationId, Token, Url, Who, print_json
from placet.client.cli.transcript import Narrator
from placet.client.cli.visible import visible

ASKER = "alice"

_CONVERSATION = typer.Option(
    "--conversation", metavar="ID", callback=identifier, help="Go on in this conversation; without it, begin one."
)
_KEY = typer.Option(
    "--key", metavar="K", callback=request_key, help="Key of this request: sent again with it, it is still one turn."
)


def submit(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", callback=readable, help="What the agent is asked, as one argument.")
    ],
    conversation: Annotated[str | None, _CONVERSATION] = None,
    key: Annotated[str | None, _KEY] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the turn until it ends.")] = False,
    url: Url = None,
    token: Token = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Ask the agent for something: a turn.

    \b
    Examples:
      placet submit "Note for C-42: called back" --watch
      placet submit "And now delete it" --conversation conv_0190...
    """

    async def work() -> None:
        async with find_access(url, token, who, ASKER).client() as client:
            turn = await _submitted(client, text, conversation, key or secrets.token_hex(16))
            if as_json:
                print_json(turn, indent=None if watch else 2)
            else:
                print(f"turn         {turn['turn_id']}\nconversation {turn['conversation_id']}", flush=True)
            if watch:
                await tell(client, turn["conversation_id"], turn["turn_id"], alone=True, as_json=as_json)

    run(work())


def watch(
    conversation_id: ConversationId, url: Url = None, token: Token = None, who: Who = None, as_json: AsJson = False
) -> None:
    """Follow a conversation until its turn ends.

    Tells it from the beginning, goes on when the connection breaks, and ends when the last turn ends. Ctrl-C leaves; the
    turn goes on. With --json, one event a line.
    """

    async def work() -> None:
        async with find_access(url, token, who, ASKER).client() as client:
            view = await client.conversation(conversation_id)
            await tell(client, conversation_id, view["turns"][-1]["turn_id"], alone=False, as_json=as_json)

    run(work())


def show(
    conversation_id: ConversationId, url: Url = None, token: Token = None, who: Who = None, as_json: AsJson = False
) -> None:
    """Show a conversation: state, words, cards."""

    async def work() -> None:
        async with find_access(url, token, who, ASKER).client() as client:
            view = await client.conversation(conversation_id)
        if as_json:
            print_json(view)
        else:
            print("\n".join(_shown(view)))

    run(work())


def retry(conversation_id: ConversationId, url: Url = None, token: Token = None, who: Who = None) -> None:
    """Let a turn go on that stands still (resume failed).

    Placet keeps what the turn could not take up. When the cause is mended, this tries it again; nothing is done twice.
    """

    async def work() -> None:
        async with find_access(url, token, who, ASKER).client() as client:
            view = await client.conversation(conversation_id)
            stalled = [turn for turn in view["turns"] if turn["stalled"]] or view["turns"]
            await client.retry(conversation_id, stalled[-1]["turn_id"])
        print(f"It is tried again. Follow it: placet watch {conversation_id}")

    run(work())


def _shown(view: dict[str, Any]) -> list[str]:
    narrator = Narrator()
    said = [line for message in view["messages"] for line in narrator.message(message)]
    cards = ["", *conversation_cards(view["cards"])] if view["cards"] else []
    return [*_state(view), "", *said, *cards]


def _state(view: dict[str, Any]) -> list[str]:
    turn: dict[str, Any] = view["turns"][-1] if view["turns"] else {}
    stalled, reason = turn.get("stalled"), turn.get("reason")
    why = f": {reason}" if reason and not stalled else ""
    state = f"{view['conversation_id']} is {view['state'].replace('_', ' ')}{why}"
    retry = labelled("stalled", f"{stalled}\nplacet retry {view['conversation_id']}") if stalled else []
    return [visible(state), *retry]


async def _submitted(client: Client, text: str, conversation: str | None, key: str) -> dict[str, Any]:
    """When the answer is lost, nobody knows whether the turn was accepted; with the key it can be sent again safely."""
    try:
        return await client.submit(text, conversation_id=conversation, key=key)
    except httpx2.ConnectError:
        raise
    except httpx2.TransportError as error:
        trouble = unreachable(error)
        again = f"The turn may have been accepted. To ask again without asking twice, add: --key {key}"
        raise Trouble(trouble.code, trouble.lines[0], again) from error
