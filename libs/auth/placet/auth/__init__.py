"""Who is speaking: access tokens of the RFC 9068 profile, verified against the issuer's keys."""

from placet.auth.principal import Principal
from placet.auth.verifier import InvalidToken, KeysAway, KeySource, Verifier

__all__ = ["InvalidToken", "KeySource", "KeysAway", "Principal", "Verifier"]
