"""Who may say what, and who hears it. Everything about topology and authority at the broker is generated from here."""

from dataclasses import dataclass
from typing import Literal

from placet.contracts.commands import (
    ClaimAnswered,
    ClaimRequested,
    CommandReady,
    CommandReported,
    ResourceResolve,
    ResourceResolved,
)
from placet.contracts.message import Message
from placet.contracts.permissions import (
    DecisionAnswered,
    DecisionRelayed,
    DecisionSubmitted,
    DecisionVerified,
    DecisionVerify,
    PermissionAsked,
    PermissionDecided,
    PermissionRequested,
)
from placet.contracts.turns import (
    ToolCallProposed,
    ToolCallSettled,
    TurnAccepted,
    TurnChanged,
    TurnRequested,
    TurnResumed,
    TurnRetried,
    TurnStalled,
)

SERVICES = ("ingress", "planner", "permission", "admission", "executor")
OUTSIDE = ("frontend", "approver")
"""Broker users of programs that are not ours: each may write to its own exchange and read what is bound to its queue."""

REPLY_SLOTS = 8
"""Reply queues per asking service: how many instances of it can ask at once. Declared ahead; services declare nothing."""


@dataclass(frozen=True, slots=True)
class Route:
    """A message, its one publisher, its consumers. A request waits in a queue of its own and is answered by `reply`."""

    message: type[Message]
    publisher: str
    consumers: tuple[str, ...]
    kind: Literal["event", "request", "reply"] = "event"
    reply: type[Message] | None = None

    @property
    def wire(self) -> str:
        """Type and routing key."""
        return self.message.wire


CATALOGUE: tuple[Route, ...] = (
    Route(TurnRequested, "frontend", ("ingress",)),
    Route(TurnAccepted, "ingress", ("planner",)),
    Route(ToolCallProposed, "planner", ("admission",)),
    Route(TurnChanged, "planner", ("ingress", "frontend")),
    Route(TurnStalled, "planner", ("ingress", "frontend")),
    Route(TurnResumed, "planner", ("ingress", "frontend")),
    Route(TurnRetried, "ingress", ("planner",)),
    Route(ToolCallSettled, "admission", ("planner",)),
    Route(PermissionAsked, "admission", ("permission",)),
    Route(PermissionRequested, "permission", ("ingress", "planner", "approver")),
    Route(PermissionDecided, "permission", ("admission", "ingress", "approver")),
    Route(DecisionSubmitted, "approver", ("permission",)),
    Route(DecisionRelayed, "ingress", ("permission",), reply=DecisionAnswered),
    Route(DecisionAnswered, "permission", ("ingress",), "reply"),
    Route(CommandReady, "admission", ("executor",)),
    Route(CommandReported, "executor", ("admission",)),
    Route(ResourceResolve, "admission", ("executor",), "request", ResourceResolved),
    Route(ResourceResolved, "executor", ("admission",), "reply"),
    Route(ClaimRequested, "executor", ("admission",), "request", ClaimAnswered),
    Route(ClaimAnswered, "admission", ("executor",), "reply"),
    Route(DecisionVerify, "admission", ("permission",), "request", DecisionVerified),
    Route(DecisionVerified, "permission", ("admission",), "reply"),
)

ROUTES: dict[str, Route] = {route.wire: route for route in CATALOGUE}


def heard_by(service: str, kind: str = "event") -> dict[str, Route]:
    """The routes of one kind that a service consumes, by wire name."""
    return {route.wire: route for route in CATALOGUE if service in route.consumers and route.kind == kind}


def said_by(service: str) -> tuple[Route, ...]:
    """The routes that a service publishes."""
    return tuple(route for route in CATALOGUE if route.publisher == service)


def asks(service: str) -> bool:
    """Whether a service waits for replies, and so needs reply queues."""
    return any(route.reply for route in said_by(service))


def exchange(service: str) -> str:
    """The exchange that this service alone may write to (M3)."""
    return f"placet.{service}"


def inbox_queue(service: str) -> str:
    """The durable quorum queue of all events for a service."""
    return f"placet.{service}.in"


def request_queue(service: str) -> str:
    """The queue of requests to a service: apart from its events, so that nobody waits behind somebody who waits."""
    return f"placet.{service}.requests"


def dead_queue(service: str) -> str:
    """The terminal dead-letter queue of a service."""
    return f"placet.{service}.dead"


def reply_queue(service: str, slot: int) -> str:
    """One of the reply queues of an asking service; an instance takes a free one."""
    return f"placet.{service}.reply.{slot}"


def reply_key(service: str, slot: int) -> str:
    """The routing key by which an answerer reaches that reply queue, on the answerer's own exchange."""
    return f"reply.{service}.{slot}"
