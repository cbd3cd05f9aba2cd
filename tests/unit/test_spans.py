"""Spans of calls and requests say that something failed, and never with whose words (O3)."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, StatusCode

from placet.telemetry import call_span, edge_span, spans


@pytest.mark.req("O3")
@pytest.mark.parametrize("opened", [call_span, edge_span])
def test_a_span_tells_the_kind_of_an_error_and_not_its_text(
    opened: Callable[[str], AbstractContextManager[Span]], monkeypatch: pytest.MonkeyPatch
) -> None:
    exported, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    monkeypatch.setattr(spans, "_tracer", provider.get_tracer("placet"))
    with pytest.raises(ValueError, match="CANARY"), opened("work"):
        raise ValueError("DETAIL: Failing row contains (CANARY)")
    (span,) = exported.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ValueError")
    assert "CANARY" not in span.to_json()
    assert not trace.get_current_span().is_recording()
