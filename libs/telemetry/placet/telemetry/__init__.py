"""OpenTelemetry as Placet uses it: one trace per activity, and a link where an activity resumes another (O1)."""

from placet.telemetry.setup import start_telemetry, stop_telemetry
from placet.telemetry.spans import (
    annotate,
    call_span,
    current_traceparent,
    edge_span,
    link_to,
    process_span,
)

__all__ = [
    "annotate",
    "call_span",
    "current_traceparent",
    "edge_span",
    "link_to",
    "process_span",
    "start_telemetry",
    "stop_telemetry",
]
