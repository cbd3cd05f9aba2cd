"""What is looked for among the spans that a receiver got: the one that suspended a turn, and the one that resumed it."""

from collections.abc import Iterable

from fakes.otlp_receiver import ReceivedLink, ReceivedSpan


def asking(spans: Iterable[ReceivedSpan], operation_id: str) -> ReceivedSpan | None:
    """The span in which permission asked people about an operation, which suspends the turn."""
    asked = (span for span in spans if span.name == "process permission.asked.v1")
    return next((span for span in asked if span.attributes.get("placet.operation.id") == operation_id), None)


def resumed(spans: Iterable[ReceivedSpan], turn_id: str) -> tuple[ReceivedSpan, ReceivedLink] | None:
    """The root span that resumed a turn, with its link to what it resumes."""
    for span in spans:
        links = [link for link in span.links if link.attributes.get("placet.link") == "resumes"]
        if span.attributes.get("placet.turn.id") == turn_id and span.parent_id is None and links:
            return span, links[0]
    return None


def names(spans: Iterable[ReceivedSpan]) -> str:
    """The spans in a line."""
    return " > ".join(span.name.removeprefix("process ") for span in spans)
