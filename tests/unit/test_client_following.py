"""Following a turn while Placet is away for a moment: it is waited for, as a broken connection is (M5, U4)."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import pytest

from placet.client import Client, Refused
from placet.client.cli.following import FIRST_PAUSE, follow
from terminal import Terminal, answering, http

AWAY = http("503 Service Unavailable", '{"code": "unavailable"}').replace(b"\r\n", b"\r\nRetry-After: 1\r\n", 1)
"""What the API answers while its database restarts."""

GATEWAY = http("502 Bad Gateway", "<html>")
"""What somebody in front of the API answers while the API restarts."""


def stream(number: int, state: str) -> bytes:
    """A stream that tells one event and then breaks: it is shorter than it says."""
    data = json.dumps({"turn_id": "turn_1", "revision": number, "state": state, "reason": "", "messages": []})
    event = f"id: {number}\nevent: turn.changed.v1\ndata: {data}\n\n"
    return f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10000\r\n\r\n{event}".encode()


@pytest.mark.req("M5", "U4")
async def test_watch_goes_on_when_placet_was_away_for_a_moment(tmp_path: Path) -> None:
    view = http("200 OK", json.dumps({"turns": [{"turn_id": "turn_1"}]}))
    answers = (view, stream(1, "planning"), AWAY, GATEWAY, stream(2, "completed"))
    terminal = Terminal(tmp_path, {"PLACET_TOKEN": "a-token"})
    async with answering(*answers) as url:
        ran = await terminal.run("watch", "conv_1", "--url", url)
    assert (ran.code, ran.out) == (0, "state       planning\nended       completed\n")
    assert ran.err == "The connection broke; going on behind event 1. Ctrl-C leaves.\n" * 3


@pytest.mark.req("M5", "U1")
async def test_who_is_told_how_long_to_wait_waits_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", wait)
    answers = (stream(1, "planning"), AWAY, GATEWAY, stream(2, "completed"))
    async with answering(*answers) as url, Client(url, "a-token") as client, aclosing(follow(client, "conv_1")) as events:
        assert [(await anext(events)).id, (await anext(events)).id] == [1, 2]
    assert waited == [FIRST_PAUSE, 1.0, 4 * FIRST_PAUSE]


@pytest.mark.req("P6", "U4")
async def test_what_waiting_does_not_mend_is_not_waited_for() -> None:
    refusal = http("401 Unauthorized", '{"code": "invalid_token"}')
    async with answering(refusal) as url, Client(url, "a-token") as client, aclosing(follow(client, "conv_1")) as events:
        with pytest.raises(Refused) as refused:
            await anext(events)
    assert refused.value.code == "invalid_token"
