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
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from placet.auth.principal import Principal

log = structlog.get_logger()

ALGORITHMS = ["Ed25519", "EdDSA", "ES256", "RS256"]
LEEWAY_SECONDS = 5
REFRESH_SECONDS = 30
"""An unknown key id makes us look for new keys, but not more often than this."""


_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SUBJECT = re.compile(r"(?!rule:)[!-~]{1,255}")
"""A name that looks like a rule's would be taken for one."""


class InvalidToken(Exception):
    """The token proves nothing. The text says what is wrong with it, without any part of the token."""


class KeySource:
    """The issuer's public keys: a file or an http(s) address, read at start and again when an unknown key signs."""

    setting = "PLACET_AUTH_JWKS"

    def __init__(self, location: str) -> None:
        self._location = location
        self._read_at = 0.0
        self._keys = KeySet([])

    async def start(self) -> None:
        """Read the keys. Raises OSError, httpx2.HTTPError or ValueError when there are none to read."""
        await self._read()

    async def stop(self) -> None:
        """Nothing is held."""

    async def keys_for(self, key_id: str) -> KeySet:
        """The keys, looked for again when this one is not among them. While they cannot be had, the old ones stay."""
        if not self._has(key_id) and time.monotonic() - self._read_at > REFRESH_SECONDS:
            self._read_at = time.monotonic()  # before the first await: one look at a time, also when it fails
            try:
                await self._read()
            except (OSError, httpx2.HTTPError, ValueError) as error:
                log.warning("keys.unread", action="keys.unread", error=type(error).__name__)
        return self._keys

    def _has(self, key_id: str) -> bool:
        return any(key.kid == key_id for key in self._keys.keys)

    async def _read(self) -> None:
        if self._location.startswith(("http://", "https://")):
            async with httpx2.AsyncClient(timeout=10) as client:
                text = (await client.get(self._location)).raise_for_status().text
        else:
            text = await asyncio.to_thread(Path(self._location).read_text)
        try:
            self._keys = KeySet.import_key_set(json.loads(text))
        except (JoseError, TypeError, KeyError) as error:
            raise ValueError(f"{self._location} holds no key set") from error
        self._read_at = time.monotonic()


class Verifier:
    """Believes the tokens of one issuer for one audience."""

    def __init__(self, keys: KeySource, *, issuer: str, audience: str) -> None:
        self._keys = keys
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
        """The principal of a token. Raises InvalidToken."""
        try:
            keys = await self._keys.keys_for(_key_id(token))
            decoded = jwt.decode(token, keys, algorithms=ALGORITHMS)
            if str(decoded.header.get("typ", "")).lower() not in ("at+jwt", "application/at+jwt"):
                raise InvalidToken("typ is not at+jwt")
            self._claims.validate(decoded.claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise InvalidToken(f"{type(error).__name__}") from error
        return _principal(decoded.claims)


def _key_id(token: str) -> str:
    """The key id that an unverified token names; only used to decide whether to look for new keys."""
    from joserfc.jws import extract_compact

    header: dict[str, Any] = extract_compact(token.encode()).headers()
    return str(header.get("kid", ""))


def _principal(claims: dict[str, Any]) -> Principal:
    tenant, subject, scope = claims["tenant"], claims["sub"], claims.get("scope", "")
    if not (isinstance(tenant, str) and isinstance(subject, str) and isinstance(scope, str)):
        raise InvalidToken("tenant, sub and scope must be strings")
    if not _TENANT.fullmatch(tenant) or not _SUBJECT.fullmatch(subject):
        raise InvalidToken("tenant or sub has characters that a name of ours cannot have")
    return Principal(tenant, subject, frozenset(scope.split()), float(claims["exp"]))
