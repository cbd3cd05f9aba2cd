"""Settings come from the environment, are read once, and stop the service by name when they are missing or wrong."""

import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

EX_CONFIG = 78
"""Exit status of sysexits.h: something in the configuration is wrong."""


class WrongSetting(ValueError):
    """A setting that does not go with others: its name, and what it must be."""

    def __init__(self, name: str, must: str) -> None:
        super().__init__(must)
        self.name = name


class ServiceSettings(BaseSettings):
    """What every service needs. Each field is the variable `PLACET_` + its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="PLACET_", extra="ignore", frozen=True, allow_inf_nan=False)
    service: ClassVar[str]
    """The service whose settings they are."""

    amqp_url: str = Field(pattern=r"^amqps?://.+", description="Login of this service's own broker user, with vhost")
    amqp_user_prefix: str = Field("", description="What stands before the name of every broker user of this system")
    prefetch: int = Field(64, ge=1, le=1000, description="Deliveries in work at once")
    health_host: str = Field("127.0.0.1", description="Address of the health port")
    health_port: int | None = Field(None, ge=1, le=65535, description="Serve /healthz and /readyz on this port")
    log_level: str = Field("info", pattern="^(debug|info|warning|error)$")

    @model_validator(mode="after")
    def logs_in_as_the_service(self) -> Self:
        """Under another name nothing that it says would be believed, and it would believe nobody."""
        if _user(self.amqp_url) != self.amqp_user_prefix + self.service:
            raise WrongSetting(
                "PLACET_AMQP_USER_PREFIX", f"with {self.service!r} behind it, must make the user of PLACET_AMQP_URL"
            )
        return self


def _user(url: str) -> str:
    try:
        return unquote(urlsplit(url).username or "")
    except ValueError as error:
        raise WrongSetting("PLACET_AMQP_URL", "must be a URL") from error


class DatabaseSettings(ServiceSettings):
    """A service that owns a database."""

    database_url: str = Field(pattern=r"^postgres(ql)?://.+", description="Login of the service's own role")
    relay_grace_seconds: float = Field(5, gt=0, description="How old a promise must be before the relay keeps it")
    database_pool: int = Field(4, ge=1, le=50, description="Connections at most")


class MandateSettings(BaseSettings):
    """The key by which ingress vouches for who asked, and admission checks it."""

    model_config = SettingsConfigDict(env_prefix="PLACET_", extra="ignore", frozen=True)

    mandate_key: SecretStr = Field(min_length=16, description="Shared by ingress and admission, and nobody else")

    def mandate_bytes(self) -> bytes:
        """The key as bytes."""
        return self.mandate_key.get_secret_value().encode()


class MigrationSettings(BaseSettings):
    """What `migrate` needs: the owner of the schema, who is not the service's role."""

    model_config = SettingsConfigDict(env_prefix="PLACET_", extra="ignore", frozen=True)

    owner_url: str = Field(pattern=r"^postgres(ql)?://.+", description="Login of the role that owns the schema")
    service_role: str = Field(pattern=r"^[a-z][a-z0-9_]*$", description="The role that the service logs in with")


class AuthSettings(BaseSettings):
    """Whose tokens are believed (RFC 9068)."""

    model_config = SettingsConfigDict(env_prefix="PLACET_", extra="ignore", frozen=True)

    auth_issuer: str = Field(min_length=1, description="The issuer that must stand in `iss`, exactly")
    auth_jwks: str = Field(min_length=1, description="The issuer's keys: a file, or an http(s) address")


S = TypeVar("S", bound=BaseSettings)


def load_settings(kind: type[S]) -> S:
    """Read the settings from the environment, or exit with EX_CONFIG and a line for each one that is missing or wrong."""
    try:
        return kind()
    except ValidationError as invalid:
        for error in invalid.errors():
            print(f"setting {_name(error)}: {error['msg'].removeprefix('Value error, ')}", file=sys.stderr)
        sys.exit(EX_CONFIG)


def _name(error: Mapping[str, Any]) -> str:
    cause = error.get("ctx", {}).get("error")
    return cause.name if isinstance(cause, WrongSetting) else f"PLACET_{'_'.join(map(str, error['loc']))}".upper()
