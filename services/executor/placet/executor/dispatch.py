"""From a claim to a report: requests with one key, inside the lease, by the connector's contract."""

import asyncio
import random
from dataclasses import dataclass
from typing import Any, Literal

from placet.canonical import CanonicalCommand
from placet.executor.connector import Ambiguous, Connector, Done, NotSent, Refused
from placet.service.crash import crash_point


@dataclass(frozen=True, slots=True)
class Known:
    """What is known after the requests of one claim; `attempts` counts also those of which nothing left."""

    outcome: Literal["succeeded", "denied", "unknown", "not_sent"]
    attempts: int
    reason: str = ""
    receipt: str | None = None
    result: Any = None


class Undecided(Exception):
    """The effect is uncertain and the key may be replayed: no report; another claim will repeat the same request (E2)."""


async def dispatch(
    connector: Connector,
    command: CanonicalCommand,
    key: str,
    *,
    seconds: float,
    request_seconds: float,
    uncertain: str = "",
) -> Known:
    """Call the provider until something is known, as long as a request may begin: `seconds` from now.

    `uncertain` says why an earlier claim may already have had the effect; then a refusal proves nothing. Raises Undecided
    when time runs out while a repetition would be harmless.
    """
    replay = connector.replay_seconds(command.action) is not None
    end = asyncio.get_running_loop().time() + seconds
    unreachable, attempt = "", 0
    while True:
        attempt += 1
        match await _answer(connector, command, key, request_seconds):
            case Done(receipt, result):
                return Known("succeeded", attempt, receipt=receipt, result=result)
            case Refused() as refused if uncertain:
                return Known("unknown", attempt, f"{uncertain}; asked again, the provider says: {refused}")
            case Refused() as refused:
                return Known("denied", attempt, str(refused))
            case Ambiguous() as ambiguous if not replay:
                return Known("unknown", attempt, str(ambiguous))
            case Ambiguous() as ambiguous:
                uncertain = str(ambiguous)
            case NotSent() as not_sent:
                unreachable = f"the provider could not be reached: {not_sent}"
        if not await _pause(attempt, end):
            return _out_of_time(uncertain, unreachable, attempt)


async def _answer(
    connector: Connector, command: CanonicalCommand, key: str, seconds: float
) -> Done | Refused | Ambiguous | NotSent:
    """What becomes of one request, which takes so long at most, whatever the connector thinks (E9)."""
    try:
        crash_point("before_provider")
        async with asyncio.timeout(seconds):
            done = await connector.call(command, key)
        crash_point("after_provider")
        return done
    except (Refused, NotSent) as answer:
        return answer
    except (Ambiguous, TimeoutError) as lost:
        return Ambiguous(str(lost) or f"no answer within {seconds:g} s")


async def _pause(attempt: int, end: float) -> bool:
    """Wait before the next request. Whether it may begin: not after `end`, also when a busy process wakes up late."""
    loop = asyncio.get_running_loop()
    pause = min(2.0, 0.1 * 2**attempt) * random.uniform(0.8, 1.2)  # noqa: S311  jitter, no secret
    if loop.time() + pause > end:
        return False
    await asyncio.sleep(pause)
    return loop.time() <= end


def _out_of_time(uncertain: str, unreachable: str, attempts: int) -> Known:
    if uncertain:
        raise Undecided(uncertain)
    return Known("not_sent", attempts, unreachable)
