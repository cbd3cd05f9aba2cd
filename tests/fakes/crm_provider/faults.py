"""The ways in which the provider can fail its callers; set through the control API."""

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Faults(BaseModel):
    """The faults in force. Counted ones are used up, the others hold until changed."""

    model_config = ConfigDict(extra="forbid")

    slow_seconds: float = Field(default=0, ge=0)
    drop_responses: int = Field(default=0, ge=0)
    forget_keys: bool = False
    refuse_status: int | None = Field(default=None, ge=400, le=599)
    garbage_responses: int = Field(default=0, ge=0)
    error_after_effect: int = Field(default=0, ge=0)

    def spoil(self, response: Response) -> Response:
        """Replace the response to a request whose effect is done, if a counted fault is left."""
        if self._use_up("drop_responses"):
            return BrokenResponse()
        if self._use_up("garbage_responses"):
            return Response('{"receipt": "rcpt_', media_type="application/json")
        if self._use_up("error_after_effect"):
            return Response('{"error":"bad_gateway"}', status_code=502, media_type="application/json")
        return response

    def _use_up(self, name: str) -> bool:
        left: int = getattr(self, name)
        if left:
            setattr(self, name, left - 1)
        return left > 0


class BrokenResponse(Response):
    """Promises a long body and stops early, so the server has to break the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head and a first byte, and no more."""
        headers = [(b"content-type", b"application/json"), (b"content-length", b"4096")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})
