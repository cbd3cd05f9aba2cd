"""A verified caller."""

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a verified token speaks for. The tenant comes from the token, never from a field of a request."""

    tenant: str
    subject: str
    scopes: frozenset[str]
    expires: float = field(default=math.inf, compare=False)
    """When the token ends, in seconds since 1970."""

    def may(self, scope: str) -> bool:
        """Whether the token opens this door; what lies behind it is for the policy to say."""
        return scope in self.scopes
