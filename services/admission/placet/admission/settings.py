"""Settings of admission."""

from typing import ClassVar

from pydantic import Field, model_validator

from placet.service.settings import DatabaseSettings, MandateSettings, WrongSetting


class Settings(DatabaseSettings, MandateSettings):
    """Admission's own settings, all in seconds."""

    service: ClassVar[str] = "admission"
    lease_seconds: float = Field(30, gt=0, description="How long a claim is believed")
    recovery_seconds: float = Field(1, gt=0, description="How often lost leases are looked for")
    resolve_seconds: float = Field(
        20, gt=0, description="How long a target may take to be looked up before the call is rejected"
    )
    ask_seconds: float = Field(5, gt=0, description="How long an answer of another service is waited for")

    @model_validator(mode="after")
    def deadlines_fit(self) -> "Settings":
        """A claim must outlive the check that comes before it, or every claim would be lost (ADR 0009)."""
        if self.ask_seconds >= self.lease_seconds:
            raise WrongSetting("PLACET_ASK_SECONDS", "must be shorter than PLACET_LEASE_SECONDS")
        return self
