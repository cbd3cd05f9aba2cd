"""The client library and the `placet` command where there is no Placet: what is refused before anything is sent."""

import asyncio
import errno
import json
from base64 import urlsafe_b64encode
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest
from typer.testing import CliRunner

from placet.client import Client, Refused
from placet.client.__main__ import app
from placet.client.cli.access import find_access
from placet.client.cli.leaving import REFUSED, UNREACHABLE, USAGE, Trouble
from placet.client.cli.reasons import why_unreachable
from placet.contracts.examples import EXAMPLES
from placet.contracts.permissions import PermissionRequested
from terminal import Terminal, answering, end, http

NOBODY = "http://127.0.0.1:9"

BYTES = "h\udcffi"
"""An argument that is not UTF-8, as Python has it."""


def assert_usage(words: str, *commands: list[str]) -> None:
    """Each command is wrong usage for this reason, which its last line says."""
    for command in commands:
        ran = CliRunner().invoke(app, command, env={"PLACET_URL": NOBODY, "PLACET_TOKEN": "a-token"})
        assert (ran.exit_code, ran.stdout) == (USAGE, ""), (command, ran.exception)
        assert words in ran.stderr.splitlines()[-1], command


@pytest.mark.req("U4")
def test_what_is_no_id_is_asked_of_nobody() -> None:
    ids = ["../approvals", "..", "a?b", "a/decision", "a\n", "", BYTES]
    assert_usage("this is no id", *(["card", text] for text in ids))
    others = ["show", "watch", "retry", "approve", "deny"]
    assert_usage("this is no id", *([command, "../approvals"] for command in others))
    assert_usage("this is no id", ["submit", "hi", "--conversation", BYTES])


@pytest.mark.req("U4")
def test_an_empty_option_is_not_taken_for_none() -> None:
    assert_usage("this is no id", ["submit", "hi", "--conversation", ""])
    options = [["submit", "hi", "--key", ""], ["approve", "apr_1", "--yes", "--digest", ""]]
    access = [["doctor", option, ""] for option in ("--token", "--as", "--url")]
    assert_usage("it is empty", *options, *access)


@pytest.mark.req("U4")
def test_a_key_that_cannot_be_sent_is_wrong_usage() -> None:
    keys = ["schlüssel", "a\nb", "k" * 256]
    assert_usage("255 printable ASCII", *(["submit", "hi", "--key", key] for key in keys))


@pytest.mark.req("U4")
def test_what_is_no_text_is_wrong_usage() -> None:
    options = [["submit", "hi", "--key", BYTES], ["deny", "apr_1", "--comment", BYTES], ["doctor", "--as", BYTES]]
    assert_usage("not text in this terminal's encoding", ["submit", BYTES], *options)


@pytest.mark.req("U4")
async def test_a_terminal_that_knows_ascii_only_cannot_send_other_text(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, {"PLACET_TOKEN": "a-token", "LC_ALL": "C", "PYTHONUTF8": "0"})
    ran = await terminal.run("submit", "grüße", "--url", NOBODY)
    assert (ran.code, "not text in this terminal's encoding" in ran.err) == (USAGE, True)
    assert "Traceback" not in ran.err


@pytest.mark.req("U4")
@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://", "http://:80", "https://placet:x", "http://h/\udcff"])
def test_an_address_needs_a_host_and_a_possible_port(url: str) -> None:
    with pytest.raises(Trouble, match="not a URL") as trouble:
        find_access(url, "a-token", None, "alice")
    assert trouble.value.code == USAGE


async def unreached(folder: Path, url: str) -> str:
    """Why an address is not reached, as the command says it."""
    ran = await Terminal(folder, {"PLACET_TOKEN": "a-token"}).run("doctor", "--url", url)
    assert ran.code == UNREACHABLE
    return ran.err


@pytest.mark.req("U4")
async def test_no_tls_and_no_such_host_are_not_called_nobody(tmp_path: Path) -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(http("400 Bad Request", ""))
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        said = await unreached(tmp_path, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert "no TLS connection came about (WRONG_VERSION_NUMBER)" in said
    assert "the name of the host leads nowhere" in await unreached(tmp_path, "http://no.such.host.invalid")


@pytest.mark.req("U4")
def test_of_several_addresses_the_one_that_refused_says_why() -> None:
    away = OSError(errno.ENETUNREACH, "Connect call failed ('::1', 9)")
    assert why_unreachable(connecting(away)) == "Network is unreachable"
    assert why_unreachable(connecting(away, ConnectionRefusedError(errno.ECONNREFUSED, ""))) == "nobody listens there"
    assert why_unreachable(httpx2.ReadTimeout("")) == "ReadTimeout"


def connecting(*failures: OSError) -> httpx2.ConnectError:
    """As the client library tells of several addresses."""
    error = httpx2.ConnectError("All connection attempts failed")
    error.__cause__ = OSError("All connection attempts failed")
    error.__cause__.__cause__ = ExceptionGroup("multiple connection attempts failed", failures)
    return error


@pytest.mark.req("U4")
async def test_a_profile_that_is_named_and_missing_is_said_to_be_missing(tmp_path: Path) -> None:
    for more in ({}, {"PLACET_URL": NOBODY, "PLACET_TOKEN": "a-token"}):
        ran = await Terminal(tmp_path, more | {"PLACET_PROFILE": "none.json"}).run("doctor")
        assert (ran.code, ran.err.splitlines()[0]) == (USAGE, "PLACET_PROFILE names none.json, which does not exist.")


@pytest.fixture
def full() -> Generator[IO[bytes]]:
    """Where nothing more can be written."""
    with Path("/dev/full").open("wb") as opened:
        yield opened


@pytest.mark.req("U4")
async def test_output_that_has_nowhere_to_go_is_said_in_one_line(tmp_path: Path, full: IO[bytes]) -> None:
    terminal = Terminal(tmp_path, {"PLACET_TOKEN": "a-token"})
    async with answering(http("204 No Content", ""), http("404 Not Found", "{}")) as url:
        ran = await end(await terminal.begin("doctor", "--url", url, out=full))
    assert (ran.code, ran.err) == (REFUSED, "Cut short: No space left on device.\n")


@pytest.mark.req("U4")
@pytest.mark.parametrize("expires", [10**18, 10**30, -(10**30), "soon"])
async def test_doctor_says_nothing_of_an_end_beyond_every_calendar(tmp_path: Path, expires: Any) -> None:
    claims = json.dumps({"sub": "alice", "tenant": "t1", "exp": expires}).encode()
    terminal = Terminal(tmp_path, {"PLACET_TOKEN": f"h.{urlsafe_b64encode(claims).decode().rstrip('=')}.s"})
    async with answering(http("204 No Content", ""), http("404 Not Found", "{}")) as url:
        ran = await terminal.run("doctor", "--url", url)
    assert (ran.code, ran.err) == (0, "")
    assert "ok   token of alice of t1\n" in ran.out


@pytest.mark.req("U4", "P5")
async def test_what_is_typed_and_is_no_text_is_no_yes(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, {"PLACET_TOKEN": "a-token", "PYTHONIOENCODING": "utf-8:strict"})
    card = next(example for example in EXAMPLES if isinstance(example, PermissionRequested))
    shown = card.model_dump(mode="json") | {"state": "pending", "decided_by": None, "reason": None}
    async with answering(http("200 OK", json.dumps(shown))) as url:
        ran = await terminal.run("approve", "int_1", "--url", url, typed="\udcff\n")
    assert (ran.code, "Traceback" in ran.err) == (USAGE, False)


@pytest.mark.req("U4")
@pytest.mark.parametrize("name", ["", ".", "..", "../approvals", "conv_1/events"])
async def test_a_name_that_leaves_its_place_in_a_path_names_nothing(name: str) -> None:
    async with Client(NOBODY, "a-token") as client:
        requests = [
            client.conversation(name),
            client.retry(name, "turn_1"),
            client.retry("conv_1", name),
            client.approval(name),
            client.decide(name, "approve", "sha256:0"),
            anext(client.events(name)),
        ]
        for request in requests:
            with pytest.raises(Refused) as refused:
                await request
            assert (refused.value.status, refused.value.code) == (404, "not_found")


@pytest.mark.req("U4")
async def test_an_id_stays_one_segment_of_a_path() -> None:
    heard: list[str] = []
    async with answering(http("404 Not Found", "{}"), heard=heard) as url, Client(url, "a-token") as client:
        with pytest.raises(Refused):
            await client.approval("a?b#c%2e é")
    assert heard == ["GET /v1/approvals/a%3Fb%23c%252e%20%C3%A9 HTTP/1.1"]
