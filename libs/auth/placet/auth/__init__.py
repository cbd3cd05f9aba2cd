"""Who is speaking: access tokens of the RFC 9068 profile, verified against the issuer's keys."""

from placet.auth.principal import Principal
from placet.auth.verifier import InvalidToken, KeySource, Verifier

__all__ = ["InvalidToken", "KeySource", "Principal", "Verifier"]
