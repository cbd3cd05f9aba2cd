"""Every span that Placet makes, with its name, kind and attributes. Nothing else in the project opens one."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Link, Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

LINK = "placet.link"
"""Attribute of a link, which says why there is one: `caller`, `decided_by`, or what `link_to` is told."""

_propagator = TraceContextTextMapPropagator()
_tracer = trace.get_tracer("placet")


def current_traceparent() -> str:
    """The W3C traceparent of the current span, or an empty string when there is none."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


class process_span:
    """The handling of one delivery. It is a child of the message's creation context, which is also the rule for a
    redelivery (B46); a message that `resumes` something begins a new trace, linked to who sent it.

    A class, because it stands around every delivery: generator context managers cost twice as much as the span itself.
    """

    __slots__ = ("_span", "_token")

    def __init__(
        self,
        wire: str,
        *,
        source: str,
        queue: str,
        message_id: str,
        traceparent: str,
        resumes: bool,
        redelivered: bool,
        ids: Mapping[str, AttributeValue],
    ) -> None:
        remote = _context(traceparent)
        creator = trace.get_current_span(remote).get_span_context()
        attributes: dict[str, AttributeValue] = {
            "messaging.system": "rabbitmq",
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.destination.name": f"{source}:{wire}:{queue}",
            "messaging.rabbitmq.destination.routing_key": wire,
            "messaging.message.id": message_id,
            "placet.redelivered": redelivered,
            **ids,
        }
        self._span = _tracer.start_span(
            f"process {wire}",
            context=Context() if resumes else remote,
            kind=SpanKind.CONSUMER,
            links=[Link(creator, {LINK: "decided_by"})] if resumes and creator.is_valid else None,
            attributes=attributes,
        )

    def __enter__(self) -> Span:
        self._token = attach(trace.set_span_in_context(self._span))
        return self._span

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        detach(self._token)
        if error is not None:
            self._span.set_status(StatusCode.ERROR, type(error).__name__)
        self._span.end()


@contextmanager
def edge_span(name: str, traceparent: str = "") -> Generator[Span]:
    """A request from outside. It always begins a trace of ours: a caller's context is at most a link (B04)."""
    caller = trace.get_current_span(_context(traceparent)).get_span_context()
    links = [Link(caller, {LINK: "caller"})] if caller.is_valid else []
    with _current(name, context=Context(), kind=SpanKind.SERVER, links=links) as span:
        yield span


@contextmanager
def call_span(name: str, **attributes: AttributeValue) -> Generator[Span]:
    """A call to the outside: a model (`chat {model}`) or a provider. `__` in an attribute's name stands for a dot."""
    with _current(name, kind=SpanKind.CLIENT, attributes=_dotted(attributes)) as span:
        yield span


@contextmanager
def _current(name: str, **more: Any) -> Generator[Span]:
    """A span for the block. Of an error only the kind: its text may show a row, or what somebody sent (O3)."""
    with _tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False, **more) as span:
        try:
            yield span
        except Exception as error:
            span.set_status(StatusCode.ERROR, type(error).__name__)
            raise


def link_to(traceparent: str, why: str) -> None:
    """Link the current span to a stored context, and say why: today it `resumes` what that span suspended (O1)."""
    target = trace.get_current_span(_context(traceparent)).get_span_context()
    if target.is_valid:
        trace.get_current_span().add_link(target, {LINK: why})


def annotate(**attributes: AttributeValue) -> None:
    """Set attributes on the current span; `__` in a name stands for a dot."""
    trace.get_current_span().set_attributes(_dotted(attributes))


def _dotted(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    return {name.replace("__", "."): value for name, value in attributes.items()}


def _context(traceparent: str) -> Context:
    return _propagator.extract({"traceparent": traceparent}, Context()) if traceparent else Context()
