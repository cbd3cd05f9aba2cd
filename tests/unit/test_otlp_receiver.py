"""The trace receiver shows what the real exporter sent over the wire."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, Tracer, format_span_id, format_trace_id

from fakes.otlp_receiver import OtlpReceiver, ReceivedLink


@pytest.fixture
async def receiver() -> AsyncIterator[OtlpReceiver]:
    async with OtlpReceiver() as receiver:
        yield receiver


async def export(
    receiver: OtlpReceiver, work: Callable[[Tracer], None], compression: Compression = Compression.NoCompression
) -> None:
    """Trace some work with the real SDK; the exporter blocks, so it gets a thread."""
    exporter = OTLPSpanExporter(endpoint=f"{receiver.endpoint}/v1/traces", compression=compression)
    provider = TracerProvider(resource=Resource.create({"service.name": "planner"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    work(provider.get_tracer("test"))
    await asyncio.to_thread(provider.shutdown)


def one_span(tracer: Tracer) -> None:
    tracer.start_span("turn process").end()


def parent_and_child(tracer: Tracer) -> None:
    with tracer.start_as_current_span("parent"):
        tracer.start_span("child").end()


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
async def test_a_span_arrives_with_all_it_says(receiver: OtlpReceiver, compression: Compression) -> None:
    attributes = {"text": "x", "count": 3, "share": 0.5, "yes": True, "list": ("a", "b")}

    def work(tracer: Tracer) -> None:
        span = tracer.start_span("turn process", kind=SpanKind.CONSUMER, attributes=attributes, start_time=1)
        span.set_status(Status(StatusCode.ERROR))
        span.end(end_time=2)

    await export(receiver, work, compression)
    (span,) = receiver.spans

    assert (span.service, span.name, span.kind, span.status) == ("planner", "turn process", "CONSUMER", "ERROR")
    assert (span.start_ns, span.end_ns, span.parent_id, span.links) == (1, 2, None, ())
    assert span.attributes == attributes


async def test_parents_and_traces_can_be_followed(receiver: OtlpReceiver) -> None:
    await export(receiver, parent_and_child)
    await export(receiver, one_span)
    (parent,) = receiver.named("par")
    (child,) = receiver.named("child")

    assert child.parent_id == parent.span_id
    assert receiver.trace(parent.trace_id) == [parent, child]


async def test_links_lead_to_spans_elsewhere(receiver: OtlpReceiver) -> None:
    expected: list[ReceivedLink] = []

    def work(tracer: Tracer) -> None:
        there = tracer.start_span("there").get_span_context()
        tracer.start_span("here", links=[Link(there, {"why": "resume"})]).end()
        ids = format_trace_id(there.trace_id), format_span_id(there.span_id)
        expected.append(ReceivedLink(*ids, {"why": "resume"}))

    await export(receiver, work)
    assert receiver.named("here")[0].links == tuple(expected)


async def test_a_wait_ends_when_the_span_arrives(receiver: OtlpReceiver) -> None:
    waiting = asyncio.create_task(receiver.wait_for(lambda _: receiver.named("turn"), "a turn is traced"))
    await export(receiver, one_span)
    assert [span.name for span in await waiting] == ["turn process"]


async def test_a_wait_in_vain_says_what_was_awaited_and_seen(receiver: OtlpReceiver) -> None:
    await export(receiver, one_span)
    with pytest.raises(AssertionError, match=r"a decision is traced; spans seen: \['turn process'\]"):
        await receiver.wait_for(lambda _: receiver.named("decision"), "a decision is traced", timeout=0.05)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_what_is_no_trace_is_refused(receiver: OtlpReceiver, encoding: str) -> None:
    async with httpx2.AsyncClient() as client:
        response = await client.post(
            f"{receiver.endpoint}/v1/traces", content=b"\xff\xff", headers={"Content-Encoding": encoding}
        )
    assert response.status_code == 400
    assert receiver.spans == []


async def test_a_compressed_stream_cut_short_is_refused(receiver: OtlpReceiver) -> None:
    async with httpx2.AsyncClient() as client:
        response = await client.post(
            f"{receiver.endpoint}/v1/traces",
            content=gzip.compress(b"cut short")[:-6],
            headers={"Content-Encoding": "gzip"},
        )
    assert response.status_code == 400


async def test_it_comes_back_on_the_same_port_with_its_spans() -> None:
    receiver = OtlpReceiver()
    endpoints: set[str] = set()
    for _ in range(2):
        async with receiver:
            endpoints.add(receiver.endpoint)
            await export(receiver, one_span)
    assert len(endpoints) == 1
    assert len(receiver.spans) == 2


async def test_a_taken_port_is_an_error_of_the_one_who_starts(receiver: OtlpReceiver) -> None:
    with pytest.raises(OSError, match="in use"):
        await OtlpReceiver(receiver.port).start()
