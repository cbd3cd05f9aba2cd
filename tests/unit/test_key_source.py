"""The issuer's keys: read at start, and again when an unknown key signs, but not more often than now and then (P6, M5)."""

from pathlib import Path

import pytest

from placet.auth import InvalidToken, KeySource, Verifier
from placet.auth.verifier import REFRESH_SECONDS
from placet.local.issuer import ISSUER, Issuer

SCOPES = ("placet:approval.decide",)


async def started(jwks: Path) -> Verifier:
    keys = KeySource(str(jwks))
    await keys.start()
    return Verifier(keys, issuer=ISSUER, audience="placet-permission")


async def refused(verifier: Verifier, token: str) -> bool:
    with pytest.raises(InvalidToken):
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
    hours.now += REFRESH_SECONDS + 1
    assert await refused(verifier, Issuer().token("ann", "t1", SCOPES))
    assert (await verifier.verify(issuer.token("ann", "t1", SCOPES))).subject == "ann"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"keys": 7}', "{}"])
async def test_without_keys_it_does_not_start(tmp_path: Path, content: str) -> None:
    jwks = tmp_path / "jwks.json"
    jwks.write_text(content)
    with pytest.raises((OSError, ValueError)):
        await KeySource(str(jwks)).start()
