"""The policy: a closed, versioned text of rules. What it does not name it denies; what it cannot read stops the service."""

import hashlib
from pathlib import Path
from typing import Annotated, Literal

import rfc8785
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from placet.contracts.actions import ACTIONS
from placet.contracts.message import why_invalid
from placet.service.documents import BadDocument, read_document

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]


Scope = Annotated[str, Field(pattern=r"^[\x21\x23-\x5B\x5D-\x7E]+$")]
"""One scope as a token can hold it (RFC 6749, 3.3). Nobody could ever answer for another text."""


class Obligations(BaseModel):
    """What a rule asks of the approver (P6): the scope of the token, a second person, an answer in time."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    scope: Scope = "placet:approval.decide"
    second_person: bool = False
    expires_in_seconds: int = Field(default=86400, ge=1, le=90 * 86400)


class Rule(BaseModel):
    """One standing answer for some actions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    id: Name
    effect: Literal["deny", "ask", "allow"]
    actions: list[str] = Field(min_length=1)
    reason: str = ""
    risk: Literal["low", "high"] = "low"
    approver: Obligations | None = None

    @model_validator(mode="after")
    def makes_sense(self) -> "Rule":
        """An action that is not in the catalogue is a typo, and a typo must not open a gate (B13)."""
        if unknown := sorted(set(self.actions) - ACTIONS.keys()):
            raise ValueError(f"actions names {unknown[0]!r}, which the catalogue does not have")
        if (self.effect == "ask") != (self.approver is not None):
            raise ValueError("approver belongs to the effect ask, and to no other")
        return self


class Policy(BaseModel):
    """All rules in force, with a version that is made of their content (P11)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Name
    rules: list[Rule]

    @model_validator(mode="after")
    def ids_are_unique(self) -> "Policy":
        """A decision names its rule, so a rule has a name of its own."""
        ids = [rule.id for rule in self.rules]
        if repeated := {each for each in ids if ids.count(each) > 1}:
            raise ValueError(f"rules: the id {min(repeated)!r} stands twice")
        return self

    @property
    def version(self) -> str:
        """The name, and the hash of the canonical form: two policies with one version are the same policy."""
        content = rfc8785.dumps(self.model_dump(mode="json"))
        return f"{self.name}@sha256:{hashlib.sha256(content).hexdigest()}"

    def of(self, action: str, effect: str) -> Rule | None:
        """The first rule with this effect for the action."""
        return next((rule for rule in self.rules if rule.effect == effect and action in rule.actions), None)


def load_policy(path: Path) -> Policy:
    """Read a policy. Raises BadDocument with the key that is wrong."""
    try:
        return Policy.model_validate(read_document(path))
    except ValidationError as invalid:
        raise BadDocument(f"{path}: {why_invalid(invalid)}") from invalid
