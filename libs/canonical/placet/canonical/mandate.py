"""The mandate of a turn: ingress vouches for who asked, so that the planner cannot say that somebody else did.

The planner carries it and cannot make one: only ingress, which signs, and admission, which checks, hold the key.
"""

import hashlib
import hmac
from dataclasses import dataclass

import rfc8785


@dataclass(frozen=True, slots=True)
class Mandate:
    """Who asked for which turn."""

    tenant: str
    conversation_id: str
    turn_id: str
    principal: str

    def sign(self, key: bytes) -> str:
        """HMAC-SHA-256 (RFC 2104) over the canonical fields, in hex."""
        fields = rfc8785.dumps([self.tenant, self.conversation_id, self.turn_id, self.principal])
        return hmac.new(key, b"placet.mandate.v1\n" + fields, hashlib.sha256).hexdigest()

    def is_signed(self, signature: str, key: bytes) -> bool:
        """Whether the holder of the key has signed exactly this."""
        return hmac.compare_digest(self.sign(key).encode(), signature.encode())
