"""Settings of ingress."""

from typing import ClassVar

from pydantic import Field

from placet.service.settings import AuthSettings, DatabaseSettings, MandateSettings


class Settings(DatabaseSettings, AuthSettings, MandateSettings):
    """Ingress's own settings."""

    service: ClassVar[str] = "ingress"
    redis_url: str = Field(pattern=r"^rediss?://.+", description="Where viewers of streams are woken")
    redis_prefix: str = Field("placet", min_length=1, description="What stands before every Redis name")
    audience: str = Field("placet", min_length=1, description="Audience of clients' tokens")
    http_host: str = Field("127.0.0.1", description="Address to listen on")
    http_port: int = Field(8080, ge=0, le=65535, description="Port to listen on")
    answer_seconds: float = Field(10, gt=0, description="How long a decision's reply is waited for before 202")
    # An answer goes on in a message, in which it is up to four times as long: more would not fit (MAX_BYTES).
    max_body: int = Field(
        65536, ge=1024, le=65536, description="Bytes of a request's body at most, and not above the default"
    )
