"""From a claim to a report: requests with one key, inside the lease, by the connector's contract."""

import asyncio
import itertools
import random
from dataclasses import dataclass
from typing import Any, Literal

from placet.canonical import CanonicalCommand
from placet.executor.connector import Ambiguous, Connector, NotSent, Receipt, Refused
from placet.service.crash import crash_point


@dataclass(frozen=True, slots=True)
class Known:
    """What is known after the requests of one claim."""

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
    request_seconds: float = 60,
    uncertain: str = "",
) -> Known:
    """Call the provider until something is known, as long as a request may begin: `seconds` from now.

    One request takes `request_seconds` at most, whatever the connector thinks (E9). `uncertain` says why an earlier claim
    may already have had the effect; then a refusal proves nothing. Raises Undecided when time runs out while a repetition
    would be harmless.
    """
    replay = connector.replay_seconds(command.action) is not None
    end = asyncio.get_running_loop().time() + seconds
    unreachable = ""
    for attempt in itertools.count(1):
        try:
            crash_point("before_provider")
            async with asyncio.timeout(request_seconds):
                receipt = await connector.call(command, key)
            crash_point("after_provider")
            return _succeeded(receipt, attempt)
        except Refused as refused:
            if uncertain:
                return Known("unknown", attempt, f"{uncertain}; asked again, the provider says: {refused}")
            return Known("denied", attempt, str(refused))
        except (Ambiguous, TimeoutError) as ambiguous:
            seen = str(ambiguous) or f"no answer within {request_seconds:g} s"
            if not replay:
                return Known("unknown", attempt, seen)
            uncertain = seen
        except NotSent as not_sent:
            unreachable = f"the provider could not be reached: {not_sent}"
        if not await _pause(attempt, end):
            return _out_of_time(uncertain, unreachable, attempt)
    raise AssertionError("unreachable: the loop has no end of its own")


async def _pause(attempt: int, end: float) -> bool:
    """Wait before the next request. Whether it may begin: not after `end`, also when a busy process wakes up late."""
    now, pause = asyncio.get_running_loop().time, min(2.0, 0.1 * 2**attempt) * random.uniform(0.8, 1.2)  # noqa: S311  jitter
    if now() + pause > end:
        return False
    await asyncio.sleep(pause)
    return now() <= end


def _out_of_time(uncertain: str, unreachable: str, attempts: int) -> Known:
    if uncertain:
        raise Undecided(uncertain)
    return Known("not_sent", attempts, unreachable)


def _succeeded(receipt: Receipt, attempts: int) -> Known:
    return Known("succeeded", attempts, receipt=receipt.receipt, result=receipt.result)
