"""Bytes that mean one thing only: strict JSON at every trust edge, canonical JSON for what a person approves."""

from placet.canonical.command import CanonicalCommand, command_digest
from placet.canonical.mandate import Mandate
from placet.canonical.strict import UnsafeJson, strict_loads

__all__ = ["CanonicalCommand", "Mandate", "UnsafeJson", "command_digest", "strict_loads"]
