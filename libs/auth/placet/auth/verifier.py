"""Verification of access tokens: RFC 9068 claims, algorithms that we allow, keys of the issuer's JWKS (RFC 7517)."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import httpx2
import structlog
from joserfc import jwt
from joserfc.errors import (
    BadSignatureError,
    ClaimError,
    ExpiredTokenError,
    InvalidKeyIdError,
    JoseError,
    MissingClaimError,
    UnsupportedAlgorithmError,
)
from joserfc.jwk import JWKRegistry, Key, KeySet
from joserfc.jws import extract_compact

from placet.auth.principal import Principal

log = structlog.get_logger()

ALGORITHMS = ["Ed25519", "EdDSA", "ES256", "RS256"]
LEEWAY_SECONDS = 5
REFRESH_SECONDS = 30
"""An unknown key id makes us look for new keys, but not more often than this after a look that succeeded."""
RETRY_SECONDS = 1
"""How soon a look that failed may be followed by another."""
MAX_AGE_SECONDS = 600
"""Older keys are looked for again while they serve, at the first token that comes then: it is still judged by them."""

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SUBJECT = re.compile(r"(?!rule:)[!-~]{1,255}")
"""A name that looks like a rule's would be taken for one."""


class InvalidToken(Exception):
    """The token proves nothing. The text says what is wrong with it, without any part of the token."""


class KeysAway(OSError):
    """The issuer's keys cannot be had now, so that nothing is known about the token: waiting helps."""


class KeySource:
    """The issuer's public keys: a file or an http(s) address, read at start, when they are old, and for an unknown key."""

    setting = "PLACET_AUTH_JWKS"

    def __init__(self, location: str) -> None:
        self._location = location
        self._keys = KeySet([])
        self._read_at = 0.0
        self._look_again = 0.0
        self._away = False
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the keys. Raises OSError, httpx2.HTTPError or ValueError when there are none to read."""
        await self._read()

    async def stop(self) -> None:
        """Leave the look that may be under way."""
        if self._looking:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def keys_for(self, key_id: str) -> KeySet:
        """The keys, looked for again when this one is not among them; old ones are looked for while they still serve.

        While the source cannot be had, the old keys stay; then KeysAway is raised for a key that is not among them.
        """
        if not self._has(key_id):
            await self._look()
            if key_id and self._away and not self._has(key_id):
                raise KeysAway("the issuer's keys cannot be had now")
        elif time.monotonic() - self._read_at > MAX_AGE_SECONDS:
            self._begin_look()
        return self._keys

    def _has(self, key_id: str) -> bool:
        return any(key.kid == key_id for key in self._keys.keys)

    async def _look(self) -> None:
        """Wait for a look at the source: for the one under way, else for a new one if it is time for it."""
        if looking := self._begin_look():
            await asyncio.shield(looking)  # it belongs to all who wait for it, not to the first alone

    def _begin_look(self) -> asyncio.Task[None] | None:
        if self._looking is None or self._looking.done():
            if time.monotonic() < self._look_again:
                return None
            self._looking = asyncio.create_task(self._look_once())
        return self._looking

    async def _look_once(self) -> None:
        try:
            await self._read()
        except Exception as error:  # all who wait for it would get it, and none of them can mend it
            self._away, self._look_again = True, time.monotonic() + RETRY_SECONDS
            log.warning("keys.unread", action="keys.unread", error=type(error).__name__)

    async def _read(self) -> None:
        if self._location.startswith(("http://", "https://")):
            async with httpx2.AsyncClient(timeout=10) as client:
                text = (await client.get(self._location)).raise_for_status().text
        else:
            text = await asyncio.to_thread(Path(self._location).read_text)
        self._keys = KeySet(_usable(self._location, text))
        self._read_at, self._away = time.monotonic(), False
        self._look_again = self._read_at + REFRESH_SECONDS


def _usable(location: str, text: str) -> list[Key]:
    """The keys of a set that we can use; others are ignored (RFC 7517, section 5). Raises ValueError when there are none."""
    try:
        keys = [key for each in json.loads(text)["keys"] if (key := _key(each))]
    except (TypeError, KeyError) as error:
        raise ValueError(f"{location} holds no key set") from error
    if not keys:
        raise ValueError(f"{location} holds no key that can be used")
    return keys


def _key(document: Any) -> Key | None:
    try:
        return JWKRegistry.import_key(document)
    except Exception:  # each kind of key fails in its own way, and none may spoil the others
        return None


class Verifier:
    """Believes the tokens of one issuer for one audience."""

    def __init__(self, keys: KeySource, *, issuer: str, audience: str) -> None:
        self._keys, self._audience = keys, audience
        self._claims = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            jti={"essential": True},
            tenant={"essential": True},
        )

    async def verify(self, token: str) -> Principal:
        """The principal of a token. Raises InvalidToken, or KeysAway when that cannot be said now."""
        try:
            keys = await self._keys.keys_for(_key_id(token))
            decoded = jwt.decode(token, keys, algorithms=ALGORITHMS)
            if str(decoded.header.get("typ", "")).lower() not in ("at+jwt", "application/at+jwt"):
                raise InvalidToken("typ is not at+jwt")
            self._claims.validate(decoded.claims)
            return _principal(decoded.claims)
        except (JoseError, ValueError, TypeError, KeyError, OverflowError) as error:
            raise InvalidToken(self._why(error)) from error

    def _why(self, error: Exception) -> str:
        match error:
            case ExpiredTokenError():
                return "it has expired"
            case MissingClaimError():
                return f"it lacks {error.claim.replace(',', ', ')}"
            case ClaimError(claim="aud"):
                return f"the audience is not {self._audience}"
            case ClaimError():
                return f"{error.claim} is wrong"
            case _:
                return _why_unproven(error)


def _why_unproven(error: Exception) -> str:
    match error:
        case InvalidKeyIdError():
            return "it is signed by an unknown key"
        case BadSignatureError():
            return "the signature is wrong"
        case UnsupportedAlgorithmError():
            return "it is signed with an algorithm that is not allowed"
        case _:
            return "it is not a token"


def _key_id(token: str) -> str:
    """The key id that an unverified token names; only used to decide whether to look for new keys."""
    header: dict[str, Any] = extract_compact(token.encode()).headers()
    key_id = header.get("kid")
    return key_id if isinstance(key_id, str) else ""


def _principal(claims: dict[str, Any]) -> Principal:
    tenant, subject, scope = claims["tenant"], claims["sub"], claims.get("scope", "")
    if not (isinstance(tenant, str) and isinstance(subject, str) and isinstance(scope, str)):
        raise InvalidToken("tenant, sub and scope must be strings")
    if not _TENANT.fullmatch(tenant) or not _SUBJECT.fullmatch(subject):
        raise InvalidToken("tenant or sub has characters that a name of ours cannot have")
    return Principal(tenant, subject, frozenset(scope.split()), float(claims["exp"]))
