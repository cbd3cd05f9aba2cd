"""Settings of the permission service."""

from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from placet.permission.policy import load_policy
from placet.service.settings import AuthSettings, DatabaseSettings

SHIPPED_POLICY = str(files("placet.permission") / "policy" / "default.yaml")


class Settings(DatabaseSettings, AuthSettings):
    """The permission service's own settings."""

    service: ClassVar[str] = "permission"
    policy_file: str = Field(SHIPPED_POLICY, description="The policy in force")
    decision_audience: str = Field("placet-permission", min_length=1, description="Audience of an approver's token")
    expiry_seconds: float = Field(1, gt=0, description="How often expired questions are looked for")

    @field_validator("policy_file")
    @classmethod
    def holds_a_policy(cls, path: str) -> str:
        """A policy that cannot be put in force is found before anything starts."""
        load_policy(Path(path))
        return path
