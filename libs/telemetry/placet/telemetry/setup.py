"""The tracer provider of a process. Spans are exported by OTLP when OTEL_EXPORTER_OTLP_ENDPOINT is set, else only made."""

import os

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def start_telemetry(service: str) -> None:
    """Install the tracer provider of this process; the exporter takes its settings from the OTEL_* environment."""
    provider = TracerProvider(resource=Resource.create({"service.name": f"placet-{service}"}))
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def stop_telemetry() -> None:
    """Export what is still in memory, and stop."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        provider.shutdown()
