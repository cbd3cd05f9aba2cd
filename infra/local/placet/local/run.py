"""The names of one run: its vhost, broker users, databases and roles. Nothing of it meets another run, or remains."""

import os
import re
import secrets
from dataclasses import dataclass, field

from placet.contracts.catalogue import OUTSIDE, SERVICES

DATABASES = ("ingress", "planner", "permission", "admission")
"""The services that own a database."""


@dataclass(frozen=True)
class Run:
    """A run, and the passwords that it made up for its logins. Its name says which process of this machine it belongs to."""

    name: str = field(default_factory=lambda: f"placet_{os.getpid()}_{secrets.token_hex(4)}")
    _secret: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)

    @property
    def vhost(self) -> str:
        """The run's own vhost."""
        return self.name

    @property
    def user_prefix(self) -> str:
        """What stands before the broker users of this run: users belong to the whole broker."""
        return f"{self.name}."

    @property
    def users(self) -> list[str]:
        """Every broker user of the run."""
        return [self.user_prefix + name for name in (*SERVICES, *OUTSIDE)]

    def password(self, user: str) -> str:
        """The password of a broker user or a database role of this run."""
        return f"{self._secret}-{user.rpartition('.')[2]}"

    def database(self, service: str) -> str:
        """The service's database, and its role."""
        return f"{self.name}_{service}"

    def owner(self, service: str) -> str:
        """The role that owns the service's schema."""
        return f"{self.name}_{service}_owner"


def is_orphan(name: str) -> bool:
    """Whether this is the name of a run whose process is gone: it was killed, and could not remove what it had made."""
    found = re.fullmatch(r"placet_(\d+)_[0-9a-f]{8}", name)
    if found is None:
        return False
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
