"""Structured logs, one JSON object a line, with the trace and span that were current. No payloads, no tokens (O3, O5)."""

import logging
import sys
from typing import Any

import structlog
from opentelemetry import trace
from structlog.typing import EventDict, Processor


def first_line(error: BaseException) -> str:
    """The error without what a database adds to it: its further lines show the row, which is nobody's business here (O3)."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def start_logging(service: str, level: str) -> None:
    """Send structlog's and the standard library's records to standard output as JSON lines."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _with_trace,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    library = logging.StreamHandler(sys.stdout)
    finish: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.JSONRenderer(),
    ]
    library.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=finish))
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[library])


def _with_trace(_logger: Any, _name: str, event: EventDict) -> EventDict:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = f"{context.trace_id:032x}"
        event["span_id"] = f"{context.span_id:016x}"
    return event
