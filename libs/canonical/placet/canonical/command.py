"""The canonical form of a command, and its digest: what a person approves is these bytes and nothing else (P10, A3)."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import rfc8785

_DOMAIN = b"placet.command.v1\n"
"""Keeps a digest of a command from being the digest of anything else."""


def command_digest(canonical: bytes) -> str:
    """`sha256:` and the hex of SHA-256 over the domain line and the canonical bytes."""
    return "sha256:" + hashlib.sha256(_DOMAIN + canonical).hexdigest()


@dataclass(frozen=True, slots=True)
class CanonicalCommand:
    """Every field that changes the effect. Two commands are the same if, and only if, their canonical bytes are."""

    tenant: str
    principal: str
    action: str
    action_version: int
    resource: str | None
    arguments: dict[str, Any]
    expected_revision: str | None

    def encode(self) -> bytes:
        """RFC 8785 bytes of the command.

        Raises rfc8785.CanonicalizationError for values that the form cannot carry; strict JSON holds none.
        """
        return rfc8785.dumps(
            {
                "schemaVersion": 1,
                "tenant": self.tenant,
                "principal": self.principal,
                "action": self.action,
                "actionVersion": self.action_version,
                "resource": self.resource,
                "arguments": self.arguments,
                "expectedRevision": self.expected_revision,
            }
        )

    @classmethod
    def decode(cls, canonical: bytes) -> "CanonicalCommand":
        """Read canonical bytes that this module wrote. Raises KeyError or ValueError for any others."""
        fields = json.loads(canonical)
        return cls(
            tenant=fields["tenant"],
            principal=fields["principal"],
            action=fields["action"],
            action_version=fields["actionVersion"],
            resource=fields["resource"],
            arguments=fields["arguments"],
            expected_revision=fields["expectedRevision"],
        )
