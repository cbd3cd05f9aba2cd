"""The `placet` command at the real API: where Placet is and as whom to speak. It is a process of its own, which knows
nothing but an address and a token.
"""

import json
import re
import stat
from pathlib import Path

import pytest

from placet.local.tokens import write_profile
from terminal import Terminal, answering, http
from world import World


@pytest.mark.req("U4")
async def test_what_is_not_placet_is_said_to_be_so(terminal: Terminal) -> None:
    terminal.more["PLACET_TOKEN"] = "a-token"
    async with answering(http("200 OK", "<html>\x1b[2J</html>")) as url:
        ran = await terminal.run("approvals", "--url", url)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Refused (unreadable): this is not Placet: <html>\\u001b[2J</html>\n"


@pytest.mark.req("U4")
async def test_what_cannot_be_reached_is_status_3(terminal: Terminal) -> None:
    terminal.more = {"PLACET_URL": "http://127.0.0.1:9", "PLACET_TOKEN": "a-token"}
    for ran in await terminal.run_all(["submit", "hello"], ["doctor"]):
        assert (ran.code, ran.out) == (3, "")
        assert ran.err.startswith("Placet at http://127.0.0.1:9 cannot be reached: nobody listens there.\n")
        assert "make up" in ran.err


@pytest.mark.req("U4", "P6")
async def test_a_bad_token_is_refused_with_advice_and_never_printed(world: World, terminal: Terminal) -> None:
    expired = world.system.issuer.token("ann", world.tenant, ["placet:approval.read"], seconds=-60)
    terminal.more["PLACET_TOKEN"] = expired
    for ran in await terminal.run_all(["approvals"], ["doctor"]):
        assert ran.code == 1
        assert "Take a fresh token" in ran.out + ran.err
        assert expired not in ran.out + ran.err
    terminal.more["PLACET_TOKEN"] = "two words"
    assert (await terminal.run("approvals")).code == 2


@pytest.mark.req("U4")
async def test_doctor_tells_what_each_token_may(world: World, terminal: Terminal) -> None:
    ran = await terminal.run("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert f"{world.system.url} answers" in ran.out
    assert re.search(rf"token of alice of {world.tenant}, for 11 h 59 min .*\n +may: submit; watch, show\n", ran.out)
    assert re.search(rf"token of amy of {world.tenant}, .*\n +may: approvals, card; approve, deny\n", ran.out)
    report = await terminal.json("doctor", "--as", "ann")
    assert [(each["subject"], each["valid"]) for each in report["tokens"]] == [("ann", True)]
    profile = json.loads((terminal.folder / ".placet" / "profile.json").read_text())
    assert not any(token in ran.out + json.dumps(report) for token in profile["tokens"].values())


@pytest.mark.req("U4", "P6")
async def test_doctor_looks_at_the_audience_that_an_answer_takes(world: World, terminal: Terminal) -> None:
    both = ["placet:approval.read", "placet:approval.decide"]
    terminal.more["PLACET_TOKEN"] = world.system.issuer.token("ann", world.tenant, both, audience="placet")
    ran = await terminal.run("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert "     may: approvals, card\n     may not: approve, deny: that takes the audience of permission too" in ran.out
    terminal.more["PLACET_TOKEN"] = world.system.issuer.token("ann", world.tenant, both, audience="placet-permission")
    assert (await terminal.run("doctor")).code == 1


@pytest.mark.req("U4")
async def test_usage_is_status_2_and_says_what_to_do(world: World, terminal: Terminal, tmp_path: Path) -> None:
    cases = {
        "Choose one with --as": ["approvals", "--as", "bob"],
        "are not sent to http://127.0.0.1:9": ["approvals", "--url", "http://127.0.0.1:9"],
        "http:// or https://": ["approvals", "--url", "placet"],
        "Missing argument": ["card"],
    }
    for text, ran in zip(cases, await terminal.run_all(*cases.values()), strict=True):
        assert (ran.code, ran.out, text in ran.err) == (2, "", True), ran.err
    terminal.more["PLACET_PROFILE"] = str(tmp_path / "none.json")
    ran = await terminal.run("approvals")
    assert (ran.code, "make up" in ran.err) == (2, True)


@pytest.mark.req("U4")
async def test_the_profile_is_for_its_owner_only(terminal: Terminal, world: World) -> None:
    path = terminal.folder / ".placet" / "profile.json"
    path.chmod(0o644)
    write_profile(world.system, path, world.tenant)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["profile.json"]
    assert json.loads(path.read_text())["url"] == world.system.url
