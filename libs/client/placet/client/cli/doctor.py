"""doctor: is Placet there, is the token good, and what to do if not."""

import json
from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from typing import Any, cast

from placet.client.api import Client, Refused
from placet.client.cli.access import Access, everybody
from placet.client.cli.layout import left, moment
from placet.client.cli.leaving import REFUSED, Trouble, explain, run
from placet.client.cli.options import AsJson, Token, Url, Who, print_json
from placet.client.cli.visible import visible

Json = dict[str, Any]

NO_CONVERSATION = "conv_none"

DECIDE, DECISIONS = "placet:approval.decide", "placet-permission"
"""An answer needs a token for this audience too, as permission is set by default."""

_LACKS = f"that takes the audience of permission too, which is {DECISIONS} unless it is set otherwise"

SCOPES = {
    "placet:turn.submit": "submit",
    "placet:conversation.read": "watch, show",
    "placet:approval.read": "approvals, card",
    DECIDE: "approve, deny",
}
"""What each scope lets its holder do here."""


def doctor(url: Url = None, token: Token = None, who: Who = None, as_json: AsJson = False) -> None:
    """Look whether all is well; say what to do.

    Asks whether the address answers, whether the token is believed, and what it may do. Without --as, --token and
    PLACET_TOKEN it looks at everybody of the profile.
    """

    async def work() -> None:
        found = everybody(url, token, who)
        async with found[0].client() as client:
            await client.reach()
        reports = [await _report(access) for access in found]
        if as_json:
            print_json({"url": found[0].url, "reached": True, "tokens": reports})
        else:
            print("\n".join([f"ok   {found[0].url} answers", *(line for report in reports for line in _lines(report))]))
        if not all(report["valid"] for report in reports):
            raise Trouble(REFUSED)

    run(work())


async def _report(access: Access) -> Json:
    """What the API says of a token, and what the token says of itself."""
    async with access.client() as client:
        refused = await _refusal(client)
    claims = _claims(access.token)
    return {
        "name": access.name,
        "source": access.source,
        "valid": refused is None,
        "problem": explain(refused) if refused else [],
        "subject": claims.get("sub"),
        "tenant": claims.get("tenant"),
        "expires_at": _expiry(claims),
        "scopes": str(claims.get("scope", "")).split(),
        "audiences": _audiences(claims),
    }


async def _refusal(client: Client) -> Refused | None:
    """Why the API does not believe the token. That it may not do something, or that nothing is there, is no reason."""
    try:
        await client.conversation(NO_CONVERSATION)
    except Refused as refused:
        return None if refused.status in (403, 404) else refused
    return None


def _lines(report: Json) -> list[str]:
    if not report["valid"]:
        first, *more = report["problem"]
        return [f"bad  token of {report['name']} ({report['source']})", *(f"     {line}" for line in (first, *more))]
    whose = f"{report['subject'] or report['name']} of {report['tenant'] or 'an unknown tenant'}"
    until = f", for {left(report['expires_at'])} (until {moment(report['expires_at'])})" if report["expires_at"] else ""
    lacks = DECIDE in report["scopes"] and DECISIONS not in report["audiences"]
    may = [does for scope, does in SCOPES.items() if scope in report["scopes"] and not (lacks and scope == DECIDE)]
    return [
        visible(f"ok   token of {whose}{until}"),
        f"     may: {'; '.join(may) or 'nothing that this command does'}",
        *([f"     may not: {SCOPES[DECIDE]}: {_LACKS}"] if lacks else []),
    ]


def _audiences(claims: Json) -> list[str]:
    """One or several; a token may say it both ways."""
    audience = claims.get("aud", [])
    return [str(each) for each in cast("list[Any]", audience)] if isinstance(audience, list) else [str(audience)]


def _expiry(claims: Json) -> str | None:
    """When it ends; nothing, if it does not say, or names a moment beyond every calendar."""
    try:
        return datetime.fromtimestamp(claims["exp"], UTC).isoformat()
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _claims(token: str) -> Json:
    """What a token says of itself; nothing, if it is not a JWT. Nobody may believe it: only the API verifies tokens."""
    try:
        payload = token.split(".")[1]
        claims: Any = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return cast("Json", claims) if isinstance(claims, dict) else {}
