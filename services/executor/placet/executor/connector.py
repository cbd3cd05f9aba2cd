"""What a connector is: it states its contract, and turns a frozen command into one request with one key."""

from dataclasses import dataclass
from typing import Any, Protocol

from placet.canonical import CanonicalCommand


@dataclass(frozen=True, slots=True)
class Done:
    """The provider did what it was asked: its own proof, where it gives one, and what the model is told."""

    receipt: str | None
    result: Any


@dataclass(frozen=True, slots=True)
class Target:
    """A resource as the provider has it."""

    revision: str | None
    current: dict[str, Any]


class NotSent(Exception):
    """Nothing reached the provider: trying again is harmless."""


class Refused(Exception):
    """The provider said no, and did nothing. The text is the reason."""


class Ambiguous(Exception):
    """The request may or may not have had its effect. The text says what was seen."""


class Connector(Protocol):
    """One provider."""

    def replay_seconds(self, action: str) -> int | None:
        """How long a repeated request with the same key is harmless; None when it never is (E3)."""
        ...

    async def call(self, command: CanonicalCommand, key: str) -> Done:
        """Do what the command says, with this idempotency key. Raises NotSent, Refused or Ambiguous."""
        ...

    async def resolve(self, tenant: str, action: str, resource: str) -> Target | None:
        """The target of an action inside the tenant, or None. Raises NotSent, Refused or Ambiguous."""
        ...
