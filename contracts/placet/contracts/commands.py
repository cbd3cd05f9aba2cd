"""What admission and the executor say to each other about commands."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from placet.contracts.ids import Id
from placet.contracts.message import Command, Event


class ResourceResolve(Command):
    """Admission asks the executor for the target of an action, inside the tenant (A2)."""

    wire: ClassVar[str] = "resource.resolve.v1"
    action: str
    resource: Id


class ResourceResolved(Event):
    """The target as the provider knows it. Another tenant's resource does not exist."""

    wire: ClassVar[str] = "resource.resolved.v1"
    resource: Id
    exists: bool
    revision: str | None = None
    current: dict[str, Any] | None = None


class CommandReady(Event):
    """An admitted command waits to be claimed."""

    wire: ClassVar[str] = "command.ready.v1"
    operation_id: Id
    action: str


class ClaimRequested(Command):
    """An executor wants to dispatch a command. The connector's contract says how a lost answer is mended (E3)."""

    wire: ClassVar[str] = "claim.requested.v1"
    operation_id: Id
    worker: str = Field(max_length=128)
    replay_seconds: int | None = Field(
        default=None, ge=1, description="How long the provider honours a repeated key; None when it does not"
    )


class ClaimAnswered(Event):
    """A claim: the frozen command with fence and lease, or why there is none. Only what stands here is ever executed."""

    wire: ClassVar[str] = "claim.answered.v1"
    operation_id: Id
    granted: bool
    reason: str = ""
    fence: int = Field(default=0, ge=0)
    lease_seconds: float = Field(default=0, ge=0)
    seconds_left: float | None = Field(
        default=None,
        ge=0,
        description="Until the decision, or the provider's memory for the key, runs out: no request begins after it",
    )
    digest: str = ""
    canonical: str = ""
    uncertain: str = Field(
        default="", description="Why an earlier claim may already have had the effect; empty when none can"
    )


class CommandReported(Event):
    """What the executor knows of one attempt, under the fence of its claim.

    `not_sent` says that nothing left for the provider, so that the command may be claimed again.
    """

    wire: ClassVar[str] = "command.reported.v1"
    operation_id: Id
    fence: int = Field(ge=1)
    worker: str = Field(max_length=128)
    outcome: Literal["succeeded", "denied", "failed", "unknown", "not_sent"]
    reason: str = ""
    receipt: str | None = None
    result: Any = None
    attempts: int = Field(
        default=1, ge=0, description="Tries under this claim, all with one key, also those of which nothing left"
    )
