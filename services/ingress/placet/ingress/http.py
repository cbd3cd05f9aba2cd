"""The HTTP API. Errors are RFC 9457 problems; every body is read strictly; the caller's trace context is only linked."""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import asyncpg
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, TypeAdapter, ValidationError

from placet.auth import InvalidToken, Principal, Verifier
from placet.canonical import Refused, strict_loads
from placet.contracts.ids import Id
from placet.contracts.permissions import DecisionAnswered, DecisionRelayed
from placet.ingress.domain import Problem, TurnRequest, idempotency_key
from placet.ingress.handlers import Entrance
from placet.ingress.live import Live
from placet.ingress.problems import answer_problems
from placet.ingress.store import Store
from placet.messaging import NoAnswer, NotAsked, Requester
from placet.service.crash import handling
from placet.telemetry import annotate, edge_span

B = TypeVar("B", bound=BaseModel)

_BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), "")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent the request, and the token that says so; the token goes on to permission with a decision."""

    who: Principal
    token: str


class Api:
    """The routes, and what they need."""

    def __init__(
        self,
        store: Store,
        live: Live,
        verifier: Verifier,
        entrance: Entrance,
        requester: Requester,
        *,
        answer_seconds: float,
        max_body: int,
    ) -> None:
        self._store, self._live, self._verifier = store, live, verifier
        self._entrance, self._requester = entrance, requester
        self._answer_seconds, self._max_body = answer_seconds, max_body

    def app(self) -> FastAPI:
        """The ASGI application."""
        app = FastAPI(title="Placet", version="1", docs_url=None, redoc_url=None, telemetry={"tracing": False})
        answer_problems(app)
        app.add_api_route("/healthz", _healthy, methods=["GET"], status_code=204, response_class=Response)
        app.add_api_route("/v1/turns", self.post_turn, methods=["POST"], status_code=202)
        app.add_api_route("/v1/conversations/{conversation_id}", self.get_conversation, methods=["GET"])
        app.add_api_route("/v1/conversations/{conversation_id}/events", self.get_events, methods=["GET"])
        app.add_api_route(
            "/v1/conversations/{conversation_id}/turns/{turn_id}/retry", self.post_retry, methods=["POST"], status_code=202
        )
        app.add_api_route("/v1/approvals", self.get_cards, methods=["GET"])
        app.add_api_route("/v1/approvals/{interrupt_id}", self.get_card, methods=["GET"])
        app.add_api_route("/v1/approvals/{interrupt_id}/decision", self.post_decision, methods=["POST"])
        return app

    async def post_turn(self, request: Request) -> Response:
        """Accept a turn. 202 with its ids; the same key and body again get the same answer."""
        handling("ingress:POST /v1/turns")
        caller = await self._caller(request)
        key = idempotency_key(request.headers.get("idempotency-key"))
        asked = self._valid(TurnRequest, await self._body(request))
        with edge_span("POST /v1/turns", request.headers.get("traceparent", "")):
            accepted = await self._entrance.accept(caller.who, key, asked)
            annotate(placet__turn__id=accepted.turn_id, placet__conversation__id=accepted.conversation_id)
        return JSONResponse(
            {"turn_id": accepted.turn_id, "conversation_id": accepted.conversation_id, "state": "accepted"},
            status_code=202,
            headers={"Location": f"/v1/conversations/{accepted.conversation_id}"}
            | ({"Idempotent-Replayed": "true"} if accepted.replayed else {}),
        )

    async def get_conversation(self, request: Request, conversation_id: str) -> Response:
        """A conversation of the caller, whole: turns with their states, messages, cards."""
        caller = await self._caller(request, "placet:conversation.read")
        _known_form(conversation_id)
        found = await self._store.conversation(caller.who, conversation_id)
        if found is None:
            raise Problem(404, "not_found", "there is no such conversation")
        return JSONResponse(found)

    async def get_events(self, request: Request, conversation_id: str) -> Response:
        """The conversation's events as Server-Sent Events, from behind Last-Event-ID (or `?after=`), then live."""
        caller = await self._caller(request, "placet:conversation.read")
        _known_form(conversation_id)
        if not await self._store.owns(caller.who, conversation_id):
            raise Problem(404, "not_found", "there is no such conversation")
        after = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
        if not after.isascii() or not after.isdecimal() or len(after) > 15:
            raise Problem(400, "invalid_event_id", "Last-Event-ID is the number of an event")
        stream = self._live.follow(self._store, caller.who.tenant, conversation_id, int(after))
        return StreamingResponse(
            _sse(stream, caller.who.expires), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def post_retry(self, request: Request, conversation_id: str, turn_id: str) -> Response:
        """Try again what a turn could not take up. At most once a minute, unless it failed again."""
        caller = await self._caller(request)
        _known_form(conversation_id)
        _known_form(turn_id)
        with edge_span("POST /v1/conversations/{id}/turns/{id}/retry", request.headers.get("traceparent", "")):
            annotate(placet__turn__id=turn_id, placet__conversation__id=conversation_id)
            await self._entrance.retry(caller.who, conversation_id, turn_id)
        return JSONResponse({"turn_id": turn_id, "conversation_id": conversation_id}, status_code=202)

    async def get_cards(self, request: Request) -> Response:
        """The tenant's open cards, oldest first. `limit` is 100 at most; `cursor` is the last answer's `next_cursor`."""
        caller = await self._caller(request, "placet:approval.read")
        most = _limit(request.query_params.get("limit", "50"))
        rows = await self._store.cards(caller.who.tenant, _from_cursor(request.query_params.get("cursor")), most)
        return JSONResponse(
            {"items": [_card(row) for row in rows], "next_cursor": _to_cursor(rows[-1]) if len(rows) == most else None}
        )

    async def get_card(self, request: Request, interrupt_id: str) -> Response:
        """One card of the tenant."""
        caller = await self._caller(request, "placet:approval.read")
        _known_form(interrupt_id)
        row = await self._store.card(caller.who.tenant, interrupt_id)
        if row is None:
            raise Problem(404, "not_found", "there is no such question")
        return JSONResponse(_card(row))

    async def post_decision(self, request: Request, interrupt_id: str) -> Response:
        """Bring the caller's answer to the permission service, with the caller's own token, and tell what became of it.

        202 when the service has not answered in time: the answer is on its way, and sending it again is harmless.
        """
        caller = await self._caller(request)
        answer = await self._body(request)
        _known_form(interrupt_id)
        with edge_span("POST /v1/approvals/{id}/decision", request.headers.get("traceparent", "")):
            relayed = DecisionRelayed(interrupt_id=interrupt_id, answer=answer, authorization=caller.token)
            try:
                said = await self._requester.ask(
                    relayed, DecisionAnswered, tenant=caller.who.tenant, timeout=self._answer_seconds
                )
            except NotAsked as error:
                raise Problem(503, "not_delivered", "the answer could not be passed on; send it again") from error
            except NoAnswer:
                return JSONResponse({"code": "not_answered_yet", "interrupt_id": interrupt_id}, status_code=202)
        return _decision(said)

    async def _caller(self, request: Request, scope: str | None = None) -> Caller:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Problem(401, "token_required", "send Authorization: Bearer with an access token")
        try:
            who = await self._verifier.verify(token)
        except InvalidToken as invalid:
            raise Problem(401, "invalid_token", f"the token is not valid: {invalid}") from invalid
        if scope and not who.may(scope):
            raise Problem(403, "scope_missing", f"the token lacks the scope {scope}")
        return Caller(who, token)

    async def _body(self, request: Request) -> Any:
        """The body as strict JSON, read no further than its limit. Raises Problem 422 with the path that offends."""
        received = bytearray()
        async for chunk in request.stream():
            received += chunk
            if len(received) > self._max_body:
                raise Problem(422, "too_large", f"a body has at most {self._max_body} bytes", "$")
        try:
            return strict_loads(bytes(received), max_bytes=self._max_body)
        except Refused as refused:
            raise Problem(422, refused.code, "the body is not safe to read", refused.path) from refused

    @staticmethod
    def _valid(kind: type[B], body: Any) -> B:
        try:
            return kind.model_validate(body)
        except ValidationError as invalid:
            first = invalid.errors()[0]
            path = ".".join(["$", *(str(part) for part in first["loc"])])
            raise Problem(422, "invalid_body", first["msg"], path) from invalid


_ID = TypeAdapter(Id)


def _known_form(name: str) -> None:
    """What cannot be an id of ours names nothing. Raises Problem."""
    try:
        _ID.validate_python(name)
    except ValidationError as invalid:
        raise Problem(404, "not_found", "there is no such thing") from invalid


async def _healthy() -> Response:
    return Response(status_code=204)


def _decision(said: DecisionAnswered) -> Response:
    stands = {
        "interrupt_id": said.interrupt_id,
        "state": said.state,
        "decided_by": said.decided_by,
        "decided_at": said.decided_at.isoformat() if said.decided_at else None,
        "digest": said.digest,
    }
    if said.status == 200:
        return JSONResponse(stands)
    members = {name: value for name, value in stands.items() if value is not None}
    raise Problem(said.status, said.code, said.detail or "another decision stands", **members)


def _card(row: asyncpg.Record) -> Any:
    return json.loads(row["body"]) | {"state": row["state"], "decided_by": row["decided_by"], "reason": row["reason"]}


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 6 or int(text) < 1:
        raise Problem(400, "invalid_limit", "limit is a number from 1 to 100")
    return min(100, int(text))


def _to_cursor(row: asyncpg.Record) -> str:
    return urlsafe_b64encode(f"{row['shown_at'].isoformat()}|{row['interrupt_id']}".encode()).decode()


def _from_cursor(cursor: str | None) -> tuple[datetime, str]:
    if not cursor:
        return _BEGINNING
    try:
        at, _, interrupt_id = urlsafe_b64decode(cursor.encode()).decode().partition("|")
        _known_form(interrupt_id)
        return datetime.fromisoformat(at).astimezone(UTC), interrupt_id
    except (ValueError, OverflowError, Problem) as error:
        raise Problem(400, "invalid_cursor", "a cursor is what the last answer gave") from error


async def _sse(events: AsyncGenerator[tuple[int, str, str] | None], until: float) -> AsyncGenerator[bytes]:
    """Server-Sent Events with LF only: CRLF breaks clients in the field (FACTS a). Silence is a comment. The stream ends
    with the token that opened it; the client comes back with a new one and its Last-Event-ID.
    """
    async for event in events:
        if time.time() > until:
            return
        if event is None:
            yield b": still here\n\n"
        else:
            number, kind, data = event
            yield f"id: {number}\nevent: {kind}\ndata: {data}\n\n".encode()
