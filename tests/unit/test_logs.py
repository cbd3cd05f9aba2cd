"""Logs: one JSON object a line, with the trace that was current, whoever writes it (O5)."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

START = """
import logging, structlog
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from placet.service.logs import start_logging
trace.set_tracer_provider(TracerProvider())
start_logging("planner", LEVEL)
log = structlog.get_logger()
"""


def lines(program: str, level: str = "info") -> list[dict[str, Any]]:
    """The lines that a service with this program writes; whatever it writes must be JSON."""
    ended = subprocess.run(
        [sys.executable, "-c", START.replace("LEVEL", repr(level)) + program],
        env={**os.environ, "OTEL_SDK_DISABLED": "false"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in (ended.stdout + ended.stderr).splitlines()]


@pytest.mark.req("O5")
def test_a_record_is_one_line_that_says_what_when_and_who() -> None:
    (line,) = lines("log.info('turn.begun', action='turn.begun', operation_id='op_1', text='two\\nlines')")
    assert {"event", "level", "timestamp"} <= line.keys()
    assert (line["service"], line["event"], line["level"]) == ("planner", "turn.begun", "info")
    assert (line["operation_id"], line["text"]) == ("op_1", "two\nlines")
    assert line["timestamp"].endswith("Z")


@pytest.mark.req("O5", "O1")
def test_a_record_carries_the_span_that_was_current() -> None:
    program = """
log.info("outside")
with trace.get_tracer("t").start_as_current_span("s") as span:
    log.info("inside", expected=f"{span.get_span_context().trace_id:032x}/{span.get_span_context().span_id:016x}")
"""
    outside, inside = lines(program)
    assert f"{inside['trace_id']}/{inside['span_id']}" == inside["expected"]
    assert "trace_id" not in outside


@pytest.mark.req("O5")
def test_an_exception_is_inside_its_line() -> None:
    (line,) = lines("try:\n    1 / 0\nexcept ZeroDivisionError:\n    log.exception('message.failed')")
    assert line["level"] == "error"
    assert "ZeroDivisionError" in line["exception"]


@pytest.mark.req("O5")
def test_a_task_knows_its_service_too() -> None:
    program = """
import asyncio
async def work():
    log.info("x")
async def main():
    await asyncio.create_task(work())
asyncio.run(main())
"""
    assert [line["service"] for line in lines(program)] == ["planner"]


@pytest.mark.req("O5")
@pytest.mark.parametrize(("level", "expected"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_decides_what_is_written(level: str, expected: int) -> None:
    assert len(lines("for each in (log.debug, log.info, log.warning, log.error): each('x')", level)) == expected


@pytest.mark.req("O5")
def test_a_record_of_a_library_is_a_line_like_every_other() -> None:
    (line,) = lines("logging.getLogger('aiormq.connection').warning('the %s is gone', 'broker')")
    assert (line["level"], line["event"]) == ("warning", "the broker is gone")
    assert line["service"] == "planner"


@pytest.mark.req("O3", "O5")
def test_a_secret_setting_is_not_written() -> None:
    (line,) = lines("from pydantic import SecretStr\nlog.info('x', token=SecretStr('CANARY'))")
    assert "CANARY" not in json.dumps(line)
