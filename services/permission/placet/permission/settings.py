"""Settings of the permission service."""

from importlib.resources import files

from pydantic import Field

from placet.service.settings import AuthSettings, DatabaseSettings

SHIPPED_POLICY = str(files("placet.permission") / "policy" / "default.yaml")


class Settings(DatabaseSettings, AuthSettings):
    """The permission service's own settings."""

    policy_file: str = Field(SHIPPED_POLICY, description="The policy in force")
    decision_audience: str = Field("placet-permission", description="Audience of an approver's token")
    expiry_seconds: float = Field(1, gt=0, description="How often expired questions are looked for")
