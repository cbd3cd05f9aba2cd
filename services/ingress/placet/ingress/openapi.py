"""The OpenAPI document: what each route takes and answers. The routes read their requests themselves, so it is said here."""

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from placet.ingress.answers import (
    Card,
    CardPage,
    Conversation,
    Decision,
    NotAnsweredYet,
    ProblemDocument,
    RetryAnswer,
    TurnAnswer,
)
from placet.ingress.domain import READ, READ_CARDS, SUBMIT, TurnRequest

_REF = "#/components/schemas/{model}"
_PROBLEM = {"content": {"application/problem+json": {"schema": {"$ref": _REF.format(model="ProblemDocument")}}}}
_ALWAYS = (400, 401, 403, 503)
_TOKEN = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "An access token (RFC 9068)"}

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "description": "Fresh for each new turn, the same when it is sent again",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
_LINK = {
    "name": "traceparent",
    "in": "header",
    "description": "The caller's trace (W3C Trace Context); ours is linked to it",
    "schema": {"type": "string"},
}
_EVENT = {"type": "string", "pattern": "^[0-9]{1,15}$"}
_EVENTS = (
    {"name": "Last-Event-ID", "in": "header", "description": "The last event that was seen", "schema": _EVENT},
    {"name": "after", "in": "query", "description": "The same, where no header can be sent", "schema": _EVENT},
)
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 999_999, "default": 50}
_PAGE = (
    {"name": "limit", "in": "query", "description": "More than 100 counts as 100", "schema": _LIMIT},
    {"name": "cursor", "in": "query", "description": "`next_cursor` of the last answer", "schema": {"type": "string"}},
)
_ANSWER = {"description": "What fits the card's `response_schema`"}


class Documented(FastAPI):
    """An application whose document has the schemas that its routes only name."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        document = super().openapi()
        document["components"]["schemas"]["ProblemDocument"] = ProblemDocument.model_json_schema(ref_template=_REF)
        document["components"]["securitySchemes"] = {"token": _TOKEN}
        return document


def _described(
    answer: type[BaseModel] | None = None,
    *parameters: dict[str, Any],
    scope: str = "",
    body: dict[str, Any] | None = None,
    refusals: tuple[int, ...] = (),
    later: type[BaseModel] | None = None,
) -> dict[str, Any]:
    """What FastAPI is told of a route for people with a token. `later` is the answer with status 202."""
    refused: dict[int | str, Any] = dict.fromkeys(sorted({*_ALWAYS, *refusals}), _PROBLEM)
    refused["default"] = _PROBLEM | {"description": "Anything else that went wrong"}
    extra: dict[str, Any] = {"security": [{"token": [scope] if scope else []}], "parameters": list(parameters)}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return {
        "response_model": answer,
        "responses": refused | ({202: {"model": later, "description": "Not answered yet"}} if later else {}),
        "openapi_extra": extra,
    }


_TURN = TurnRequest.model_json_schema()

POST_TURN = _described(TurnAnswer, _KEY, _LINK, scope=SUBMIT, body=_TURN, refusals=(404, 409, 415, 422))
GET_CONVERSATION = _described(Conversation, scope=READ, refusals=(404,))
GET_EVENTS = _described(None, *_EVENTS, scope=READ, refusals=(404,))
POST_RETRY = _described(RetryAnswer, _LINK, scope=SUBMIT, refusals=(404, 409))
GET_CARDS = _described(CardPage, *_PAGE, scope=READ_CARDS)
GET_CARD = _described(Card, scope=READ_CARDS, refusals=(404,))
POST_DECISION = _described(Decision, _LINK, body=_ANSWER, refusals=(404, 409, 415, 422), later=NotAnsweredYet)
