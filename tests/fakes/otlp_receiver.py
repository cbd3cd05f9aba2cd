"""A collector for tests: takes OTLP/HTTP traces over the wire and keeps the spans to look at."""

import asyncio
import contextlib
import gzip
import socket
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

import uvicorn
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Found = TypeVar("Found")


@dataclass(frozen=True)
class ReceivedLink:
    """A link from a span to a span elsewhere."""

    trace_id: str
    span_id: str
    attributes: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came over the wire; ids are hexadecimal, kind and status named as in the SDK."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str | None
    attributes: dict[str, Any] = field(hash=False)
    links: tuple[ReceivedLink, ...]
    status: str
    start_ns: int
    end_ns: int


class OtlpReceiver:
    """Listens on 127.0.0.1; port 0 takes a free one, and keeps it when started again."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.spans: list[ReceivedSpan] = []
        self._arrival = asyncio.Event()
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT should say."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Accept exports from here on."""
        # Bound here rather than by uvicorn, which would end the process when the port is taken.
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._server = _GuestServer(_config(self._app()))
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))

    async def stop(self) -> None:
        """Stop listening; the spans stay."""
        if self._server and self._serving:
            self._server.should_exit = True
            await self._serving
        self._server = self._serving = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def named(self, name_prefix: str) -> list[ReceivedSpan]:
        """The spans whose name starts so."""
        return [span for span in self.spans if span.name.startswith(name_prefix)]

    def trace(self, trace_id: str) -> list[ReceivedSpan]:
        """The spans of one trace, earliest first."""
        return sorted((span for span in self.spans if span.trace_id == trace_id), key=lambda span: span.start_ns)

    async def wait_for(
        self, predicate: Callable[[Sequence[ReceivedSpan]], Found], description: str, timeout: float = 10
    ) -> Found:
        """Wait until the predicate holds for the spans received, and return what it returned."""
        try:
            async with asyncio.timeout(timeout):
                return await self._first_true(predicate)
        except TimeoutError:
            seen = sorted({span.name for span in self.spans})
            raise AssertionError(f"not within {timeout} s: {description}; spans seen: {seen}") from None

    async def _first_true(self, predicate: Callable[[Sequence[ReceivedSpan]], Found]) -> Found:
        while not (found := predicate(self.spans)):
            self._arrival.clear()
            await self._arrival.wait()
        return found

    def _app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/traces", self._receive, methods=["POST"])])

    async def _receive(self, request: Request) -> Response:
        body = await request.body()
        try:
            plain = gzip.decompress(body) if request.headers.get("content-encoding") == "gzip" else body
            export = ExportTraceServiceRequest.FromString(plain)
        except (DecodeError, OSError, EOFError):
            return Response(status_code=400)
        self.spans.extend(_spans_of(export))
        self._arrival.set()
        return Response(ExportTraceServiceResponse().SerializeToString(), media_type="application/x-protobuf")


class _GuestServer(uvicorn.Server):
    """A server inside somebody else's process: the signals are not its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1
    )


def _spans_of(export: ExportTraceServiceRequest) -> Iterable[ReceivedSpan]:
    for resource_spans in export.resource_spans:
        service = str(_attributes(resource_spans.resource.attributes).get("service.name", ""))
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield _span(service, span)


def _span(service: str, span: Span) -> ReceivedSpan:
    return ReceivedSpan(
        service=service,
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        attributes=_attributes(span.attributes),
        links=tuple(_link(link) for link in span.links),
        status=Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
    )


def _link(link: Span.Link) -> ReceivedLink:
    return ReceivedLink(link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes))


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    match value.WhichOneof("value"):
        case "array_value":
            return tuple(_value(item) for item in value.array_value.values)
        case "kvlist_value":
            return _attributes(value.kvlist_value.values)
        case None:
            return None
        case name:
            return getattr(value, name)
