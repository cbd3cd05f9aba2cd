"""An issuer of access tokens for one run, in place of a company's identity provider. Never for anything real."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import OKPKey

from placet.contracts.ids import new_id

ISSUER = "https://issuer.placet.example"
AUDIENCES = ("placet", "placet-permission")
ASKER = ("placet:turn.submit", "placet:conversation.read")
APPROVER = ("placet:approval.read", "placet:approval.decide")


class Issuer:
    """Signs tokens with a key that exists as long as the run, unless a kept one is given."""

    def __init__(self, key: OKPKey | None = None) -> None:
        self._key = key or OKPKey.generate_key("Ed25519", {"kid": new_id("key"), "use": "sig"})

    def write_jwks(self, path: Path) -> Path:
        """Write the public key where the services read it."""
        path.write_text(json.dumps({"keys": [self._key.as_dict(private=False)]}))
        return path

    def token(
        self,
        subject: str,
        tenant: str,
        scopes: Sequence[str],
        *,
        audience: str | Sequence[str] = AUDIENCES,
        seconds: int = 900,
        issuer: str = ISSUER,
        kind: str = "at+jwt",
    ) -> str:
        """An access token (RFC 9068); a negative lifetime makes one that has expired."""
        now = int(time.time())
        claims = {
            "iss": issuer,
            "sub": subject,
            "aud": audience if isinstance(audience, str) else list(audience),
            "client_id": "placet-local",
            "iat": now - 60,
            "exp": now + seconds,
            "jti": new_id("jti"),
            "tenant": tenant,
            "scope": " ".join(scopes),
        }
        header = {"alg": "Ed25519", "typ": kind, "kid": self._key.kid}
        return jwt.encode(header, claims, self._key, algorithms=["Ed25519"])
