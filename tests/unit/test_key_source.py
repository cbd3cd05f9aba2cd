"""The issuer's keys: read at start, when they are old, and for an unknown key, but not more often than that (P6, M5)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from placet.auth import InvalidToken, KeysAway, KeySource, Verifier
from placet.auth.verifier import MAX_AGE_SECONDS, REFRESH_SECONDS, RETRY_SECONDS
from placet.local.issuer import ISSUER, Issuer

SCOPES = ("placet:approval.decide",)


async def started(jwks: Path) -> Verifier:
    keys = KeySource(str(jwks))
    await keys.start()
    return Verifier(keys, issuer=ISSUER, audience="placet-permission")


async def refused(verifier: Verifier, token: str) -> bool:
    with pytest.raises(InvalidToken, match="unknown key"):
        await verifier.verify(token)
    return True


async def undecided(verifier: Verifier, token: str) -> bool:
    with pytest.raises(KeysAway):
        await verifier.verify(token)
    return True


class Hours:
    """Time that passes when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("placet.auth.verifier.time.monotonic", lambda: self.now)


@pytest.mark.req("P6")
async def test_a_new_key_is_found_once_the_keys_may_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = Hours(monkeypatch)
    old, new = Issuer(), Issuer()
    jwks = old.write_jwks(tmp_path / "jwks.json")
    verifier = await started(jwks)
    new.write_jwks(jwks)
    token = new.token("ann", "t1", SCOPES)
    hours.now += REFRESH_SECONDS - 1
    assert await refused(verifier, token)
    hours.now += 2
    assert (await verifier.verify(token)).subject == "ann"
    assert await refused(verifier, old.token("ann", "t1", SCOPES))


@pytest.mark.req("P6")
async def test_tokens_of_a_new_key_that_come_together_are_all_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = Hours(monkeypatch)
    new = Issuer()
    jwks = Issuer().write_jwks(tmp_path / "jwks.json")
    verifier = await started(jwks)
    new.write_jwks(jwks)
    hours.now += REFRESH_SECONDS + 1
    people = ["ann", "amy", "ada"]
    found = await asyncio.gather(*(verifier.verify(new.token(each, "t1", SCOPES)) for each in people))
    assert [each.subject for each in found] == people


@pytest.mark.req("P6")
async def test_a_caller_who_leaves_takes_the_look_from_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = Hours(monkeypatch)
    new = Issuer()
    jwks = Issuer().write_jwks(tmp_path / "jwks.json")
    verifier = await started(jwks)
    new.write_jwks(jwks)
    hours.now += REFRESH_SECONDS + 1
    leaves, stays = (asyncio.create_task(verifier.verify(new.token(each, "t1", SCOPES))) for each in ("ann", "amy"))
    await asyncio.sleep(0)
    leaves.cancel()
    assert (await stays).subject == "amy"
    assert leaves.cancelled()


@pytest.mark.req("P6")
async def test_a_key_that_was_withdrawn_is_trusted_until_the_keys_are_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = Hours(monkeypatch)
    old = Issuer()
    jwks = old.write_jwks(tmp_path / "jwks.json")
    verifier = await started(jwks)
    Issuer().write_jwks(jwks)
    token = old.token("ann", "t1", SCOPES)
    hours.now += MAX_AGE_SECONDS + 1
    assert (await verifier.verify(token)).subject == "ann"  # this one begins the look, and does not wait for it
    assert await refused(verifier, Issuer().token("ann", "t1", SCOPES))  # this one waits for it
    assert await refused(verifier, token)


@pytest.mark.req("P6", "M5")
@pytest.mark.parametrize("content", [None, "{", "{}"], ids=["gone", "cut", "empty"])
async def test_keys_that_cannot_be_read_again_leave_those_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    hours = Hours(monkeypatch)
    issuer = Issuer()
    jwks = issuer.write_jwks(tmp_path / "jwks.json")
    verifier = await started(jwks)
    jwks.unlink() if content is None else jwks.write_text(content)
    hours.now += MAX_AGE_SECONDS + 1
    new = Issuer()
    token = new.token("ann", "t1", SCOPES)
    assert await undecided(verifier, token)
    assert (await verifier.verify(issuer.token("ann", "t1", SCOPES))).subject == "ann"
    new.write_jwks(jwks)
    hours.now += RETRY_SECONDS / 2
    assert await undecided(verifier, token)
    hours.now += RETRY_SECONDS
    assert (await verifier.verify(token)).subject == "ann"


UNUSABLE: list[Any] = [
    {"kty": "AKP", "kid": "k"},
    {"kty": "EC", "crv": "P-999", "kid": "k", "x": "AA", "y": "AA"},
    {"kty": "OKP", "crv": "Ed9", "kid": "k", "x": "AA"},
    {"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "AA"},
    {"kty": "RSA", "kid": "k"},
    {"kty": []},
    {},
    7,
]


@pytest.mark.req("P6")
@pytest.mark.parametrize("unusable", UNUSABLE, ids=str)
async def test_a_key_that_cannot_be_used_is_ignored_and_spoils_no_other(tmp_path: Path, unusable: Any) -> None:
    issuer = Issuer()
    jwks = issuer.write_jwks(tmp_path / "jwks.json")
    keys = json.loads(jwks.read_text())["keys"]
    jwks.write_text(json.dumps({"keys": [unusable, *keys]}))
    verifier = await started(jwks)
    assert (await verifier.verify(issuer.token("ann", "t1", SCOPES))).subject == "ann"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"keys": 7}', '{"keys": []}', "{}", json.dumps({"keys": UNUSABLE})])
async def test_without_keys_it_does_not_start(tmp_path: Path, content: str) -> None:
    jwks = tmp_path / "jwks.json"
    jwks.write_text(content)
    with pytest.raises(ValueError):  # noqa: PT011  what is said of it is the parser's
        await KeySource(str(jwks)).start()


async def test_it_stops_while_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = Hours(monkeypatch)
    issuer = Issuer()
    keys = KeySource(str(issuer.write_jwks(tmp_path / "jwks.json")))
    await keys.start()
    verifier = Verifier(keys, issuer=ISSUER, audience="placet-permission")
    hours.now += MAX_AGE_SECONDS + 1
    before = asyncio.all_tasks()
    await verifier.verify(issuer.token("ann", "t1", SCOPES))
    looks = asyncio.all_tasks() - before
    await keys.stop()
    assert [look.done() for look in looks] == [True]
