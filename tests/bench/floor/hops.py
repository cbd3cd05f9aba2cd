"""The hops of one cycle, as the five services really make them, reduced to what must be durable.

A commit is one statement: the rows of the transition and one outbox row for each message that it promises; then the
messages are published with a confirm, the delivery is acknowledged, and the outbox rows are deleted in gathered lots.
Read off services/*/handlers.py, store.py and sql/*.sql:

    service     hears                 commits (rows)                                       says
    ingress     turn.requested        accepted_turn, conversation, turn_view               turn.accepted
    planner     turn.accepted         turn, message                                        -
                                      turn, message, tool_call                             tool_call.proposed, turn.changed
    ingress     turn.changed          turn_view, message_view, conversation, event         -
    admission   tool_call.proposed    (write: asks the executor, which asks the provider)
                                      proposal                                             permission.asked
    permission  permission.asked      approval                                             permission.requested | .decided
    ingress     permission.requested  card, conversation, event                            -
    planner     permission.requested  tool_call, turn                                      -
                ---- a gated cycle waits here, and goes on in freshly started processes ----
    permission  decision.submitted    approval                                             permission.decided
    admission   permission.decided    command                                              command.ready
    ingress     permission.decided    card, conversation, event (not when a rule decided)  -
    executor    command.ready         none: asks admission to claim, calls the provider    command.reported
    admission   claim.requested       (asks permission) command                            claim.answered
    admission   command.reported      command, attempt                                     tool_call.settled
    planner     tool_call.settled     turn, message, tool_call                             turn.changed
                                      turn, message                                        turn.changed (completed)

Gated: 17 commits and 13 durable messages; ungated: 13 commits and 11 durable messages. Questions and answers are
transient, on classic queues: resource.resolve, claim.requested and decision.verify gated, without the first ungated.
Each hop writes as many rows as the real one, into one table: the first holds the message, the others only their key.
The floor has no HTTP: the driver brings turns and decisions over the broker, as a frontend and an approver application
may, which costs the floor one delivery at ingress that ours does not have, and ours its HTTP server and the answer to a
decision. Nor does the floor read: ours reads the turn, the transcript, the approval, the command or the time ten times
a cycle.
"""

from dataclasses import dataclass
from typing import Literal

Mode = Literal["gated", "ungated"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a hop; `only` names the kind of cycle that has it, if not both have."""

    only: Mode | None = None


@dataclass(frozen=True, slots=True)
class Commit(Step):
    """Write so many rows and promise messages, in one statement. `state` is what the messages say of the turn."""

    rows: int = 1
    says: tuple[str, ...] = ()
    state: str = "executing"


@dataclass(frozen=True, slots=True)
class Say(Step):
    """Publish a durable message that no commit promises."""

    wire: str = ""


@dataclass(frozen=True, slots=True)
class Ask(Step):
    """Ask another service and wait for its answer."""

    wire: str = ""


@dataclass(frozen=True, slots=True)
class Answer(Step):
    """Answer who asks."""

    wire: str = ""


@dataclass(frozen=True, slots=True)
class Provider(Step):
    """One HTTP request to the provider."""

    method: Literal["GET", "POST"] = "GET"


HOPS: dict[str, dict[str, tuple[Step, ...]]] = {
    "ingress": {
        "turn.requested.v1": (Commit(rows=3, says=("turn.accepted.v1",)),),
        "turn.changed.v1": (Commit(rows=4),),
        "permission.requested.v1": (Commit(rows=3),),
        "permission.decided.v1": (Commit("gated", rows=3),),
    },
    "planner": {
        "turn.accepted.v1": (Commit(rows=2), Commit(rows=3, says=("tool_call.proposed.v1", "turn.changed.v1"))),
        "permission.requested.v1": (Commit(rows=2),),
        "tool_call.settled.v1": (
            Commit(rows=3, says=("turn.changed.v1",), state="planning"),
            Commit(rows=2, says=("turn.changed.v1",), state="completed"),
        ),
    },
    "admission": {
        "tool_call.proposed.v1": (Ask("gated", "resource.resolve.v1"), Commit(says=("permission.asked.v1",))),
        "permission.decided.v1": (Commit(says=("command.ready.v1",)),),
        "claim.requested.v1": (Ask(wire="decision.verify.v1"), Commit(), Answer(wire="claim.answered.v1")),
        "command.reported.v1": (Commit(rows=2, says=("tool_call.settled.v1",)),),
    },
    "permission": {
        "permission.asked.v1": (
            Commit("gated", says=("permission.requested.v1",)),
            Commit("ungated", says=("permission.decided.v1",)),
        ),
        "decision.submitted.v1": (Commit(says=("permission.decided.v1",)),),
        "decision.verify.v1": (Answer(wire="decision.verified.v1"),),
    },
    "executor": {
        "resource.resolve.v1": (Provider(), Answer(wire="resource.resolved.v1")),
        "command.ready.v1": (
            Ask(wire="claim.requested.v1"),
            Provider("gated", "POST"),
            Provider("ungated", "GET"),
            Say(wire="command.reported.v1"),
        ),
    },
}
