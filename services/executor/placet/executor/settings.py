"""Settings of the executor, among them the credentials that no other service has."""

import re
from typing import ClassVar

from pydantic import AnyHttpUrl, Field, SecretStr, field_validator, model_validator

from placet.service.settings import ServiceSettings, WrongSetting


class Settings(ServiceSettings):
    """The executor's own settings."""

    service: ClassVar[str] = "executor"
    crm_url: AnyHttpUrl = Field(description="Address of the CRM")
    crm_token: SecretStr = Field(description="Credential for the CRM")
    crm_replay_seconds: int = Field(
        86400, ge=0, description="How long the CRM honours a repeated idempotency key; 0 when it does not"
    )
    provider_seconds: float = Field(5, gt=0, description="How long one request to a provider may take")
    lease_seconds: float = Field(30, gt=0, description="Admission's lease, into which claim and requests must fit")
    dispatch_share: float = Field(0.6, gt=0, lt=1, description="The part of a lease in which requests may still begin")
    ask_seconds: float = Field(8, gt=0, description="How long a claim is waited for")

    @field_validator("crm_token")
    @classmethod
    def can_be_sent(cls, token: SecretStr) -> SecretStr:
        """What a header cannot carry, as the line break at the end of a file, would only fail at the first effect."""
        if not re.fullmatch(r"[!-~]+", token.get_secret_value()):
            raise ValueError("must be ASCII without spaces and line breaks, and not empty")
        return token

    @model_validator(mode="after")
    def deadlines_fit(self) -> "Settings":
        """Whatever is sent must be over before the lease is, or another worker would send it too (ADR 0009)."""
        begins = self.lease_seconds * self.dispatch_share
        if begins + self.provider_seconds >= self.lease_seconds:
            raise WrongSetting(
                "PLACET_PROVIDER_SECONDS",
                "with PLACET_LEASE_SECONDS x PLACET_DISPATCH_SHARE, must be shorter than the lease",
            )
        if self.ask_seconds >= begins:
            raise WrongSetting("PLACET_ASK_SECONDS", "must be shorter than PLACET_LEASE_SECONDS x PLACET_DISPATCH_SHARE")
        return self
