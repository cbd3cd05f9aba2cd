"""Settings of the executor, among them the credentials that no other service has."""

from pydantic import Field, SecretStr, model_validator

from placet.service.settings import ServiceSettings


class Settings(ServiceSettings):
    """The executor's own settings."""

    crm_url: str = Field(pattern=r"^https?://.+", description="Address of the CRM")
    crm_token: SecretStr = Field(description="Credential for the CRM")
    crm_replay_seconds: int = Field(
        86400, ge=0, description="How long the CRM honours a repeated idempotency key; 0 when it does not"
    )
    provider_seconds: float = Field(5, gt=0, description="How long one request to a provider may take")
    lease_seconds: float = Field(30, gt=0, description="Admission's lease, into which claim and requests must fit")
    dispatch_share: float = Field(0.6, gt=0, lt=1, description="The part of a lease in which requests may still begin")
    ask_seconds: float = Field(8, gt=0, description="How long a claim is waited for")

    @model_validator(mode="after")
    def names_a_secret(self) -> "Settings":
        """An empty credential would only fail at the first effect."""
        if not self.crm_token.get_secret_value():
            raise ValueError("PLACET_CRM_TOKEN must not be empty")
        return self

    @model_validator(mode="after")
    def deadlines_fit(self) -> "Settings":
        """Whatever is sent must be over before the lease is, or another worker would send it too (DESIGN 5)."""
        begins = self.lease_seconds * self.dispatch_share
        if begins + self.provider_seconds >= self.lease_seconds:
            raise ValueError(
                "PLACET_LEASE_SECONDS x PLACET_DISPATCH_SHARE + PLACET_PROVIDER_SECONDS must be shorter than the lease"
            )
        if self.ask_seconds >= begins:
            raise ValueError("PLACET_ASK_SECONDS must be shorter than PLACET_LEASE_SECONDS x PLACET_DISPATCH_SHARE")
        return self
