"""The HTTP API. Errors are RFC 9457 problems; every body is read strictly; the caller's trace context is only linked."""

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import asyncpg
import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from placet.auth import Verifier
from placet.contracts.message import TooLarge
from placet.contracts.permissions import DecisionAnswered, DecisionRelayed
from placet.ingress import openapi
from placet.ingress.domain import READ, READ_CARDS, SUBMIT, Problem, TurnRequest, not_found
from placet.ingress.handlers import Entrance
from placet.ingress.live import Live
from placet.ingress.openapi import Documented
from placet.ingress.problems import answer_problems
from placet.ingress.request import Reader, cursor_behind, key_of, known_form, last_event, limit, place, valid
from placet.ingress.store import Store
from placet.messaging import NoAnswer, NotAsked, Requester
from placet.service.crash import handling
from placet.service.database import DATABASE_AWAY
from placet.telemetry import annotate, edge_span

log = structlog.get_logger()


class EventStream(StreamingResponse):
    """Server-Sent Events."""

    media_type = "text/event-stream"


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
        self._store, self._live, self._reader = store, live, Reader(verifier, max_body=max_body)
        self._entrance, self._requester = entrance, requester
        self._answer_seconds = answer_seconds

    def app(self) -> FastAPI:
        """The ASGI application."""
        app = Documented(
            title="Placet",
            version="1",
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,  # the address would be the caller's Host header
            telemetry={"tracing": False},
        )
        answer_problems(app)
        _add_get(app, "/healthz", healthy, status_code=204, response_class=Response)
        _add_post(app, "/v1/turns", self.post_turn, status_code=202, **openapi.POST_TURN)
        conversation, card = "/v1/conversations/{conversation_id}", "/v1/approvals/{interrupt_id}"
        _add_get(app, conversation, self.get_conversation, **openapi.GET_CONVERSATION)
        app.add_api_route(f"{conversation}/events", self.get_events, response_class=EventStream, **openapi.GET_EVENTS)
        _add_post(app, f"{conversation}/turns/{{turn_id}}/retry", self.post_retry, status_code=202, **openapi.POST_RETRY)
        _add_get(app, "/v1/approvals", self.get_cards, **openapi.GET_CARDS)
        _add_get(app, card, self.get_card, **openapi.GET_CARD)
        _add_post(app, f"{card}/decision", self.post_decision, **openapi.POST_DECISION)
        return app

    async def post_turn(self, request: Request) -> Response:
        """Accept a turn. 202 with its ids; the same key and body again get the same answer."""
        caller = await self._reader.caller(request, SUBMIT)
        handling("ingress:POST /v1/turns", caller.who.tenant)
        key = key_of(request)
        asked = valid(TurnRequest, await self._reader.body(request))
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
        caller = await self._reader.caller(request, READ)
        known_form(conversation_id)
        found = await self._store.conversation(caller.who, conversation_id)
        if found is None:
            raise not_found("conversation")
        return JSONResponse(found)

    async def get_events(self, request: Request, conversation_id: str) -> Response:
        """The conversation's events as Server-Sent Events, from behind Last-Event-ID (or `?after=`), then live."""
        caller = await self._reader.caller(request, READ)
        known_form(conversation_id)
        if not await self._store.owns(caller.who, conversation_id):
            raise not_found("conversation")
        stream = self._live.follow(self._store, caller.who.tenant, conversation_id, last_event(request))
        return EventStream(_sse(stream, caller.who.expires), headers={"Cache-Control": "no-store"})

    async def post_retry(self, request: Request, conversation_id: str, turn_id: str) -> Response:
        """Try again what a turn could not take up. At most once a minute, unless it failed again."""
        caller = await self._reader.caller(request, SUBMIT)
        known_form(conversation_id)
        known_form(turn_id)
        with edge_span("POST /v1/conversations/{id}/turns/{id}/retry", request.headers.get("traceparent", "")):
            annotate(placet__turn__id=turn_id, placet__conversation__id=conversation_id)
            await self._entrance.retry(caller.who, conversation_id, turn_id)
        return JSONResponse({"turn_id": turn_id, "conversation_id": conversation_id}, status_code=202)

    async def get_cards(self, request: Request) -> Response:
        """The tenant's open cards, oldest first. `limit` is 100 at most; `cursor` is the last answer's `next_cursor`."""
        caller = await self._reader.caller(request, READ_CARDS)
        most = limit(request)
        rows = await self._store.cards(caller.who.tenant, place(request), most)
        return JSONResponse(
            {"items": [_card(row) for row in rows], "next_cursor": cursor_behind(rows[-1]) if len(rows) == most else None}
        )

    async def get_card(self, request: Request, interrupt_id: str) -> Response:
        """One card of the tenant."""
        caller = await self._reader.caller(request, READ_CARDS)
        known_form(interrupt_id)
        row = await self._store.card(caller.who.tenant, interrupt_id)
        if row is None:
            raise not_found("question")
        return JSONResponse(_card(row))

    async def post_decision(self, request: Request, interrupt_id: str) -> Response:
        """Bring the caller's answer to the permission service, with the caller's own token, and tell what became of it.

        202 when the service has not answered in time: the answer is on its way, and sending it again is harmless.
        """
        caller = await self._reader.caller(request)
        handling("ingress:POST /v1/approvals/{id}/decision", caller.who.tenant)
        answer = await self._reader.body(request)
        known_form(interrupt_id)
        with edge_span("POST /v1/approvals/{id}/decision", request.headers.get("traceparent", "")):
            relayed = DecisionRelayed(interrupt_id=interrupt_id, answer=answer, authorization=caller.token)
            try:
                said = await self._requester.ask(
                    relayed, DecisionAnswered, tenant=caller.who.tenant, timeout=self._answer_seconds
                )
            except TooLarge as error:
                raise Problem(422, "too_large", "the answer, with its token, fits into no message", "$") from error
            except NotAsked as error:
                raise Problem(503, "not_delivered", "the answer could not be passed on; send it again") from error
            except NoAnswer:
                return JSONResponse({"code": "not_answered_yet", "interrupt_id": interrupt_id}, status_code=202)
        return _decision(said)


def _add_get(app: FastAPI, path: str, answer: Callable[..., Awaitable[Response]], **described: Any) -> None:
    """Answer GET, and HEAD with what GET would say of itself. The server leaves the body out."""
    app.add_api_route(path, answer, methods=["GET"], **described)
    app.add_api_route(path, answer, methods=["HEAD"], include_in_schema=False)


def _add_post(app: FastAPI, path: str, answer: Callable[..., Awaitable[Response]], **described: Any) -> None:
    app.add_api_route(path, answer, methods=["POST"], **described)


async def healthy() -> Response:
    """The process answers; no token is needed."""
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


async def _sse(events: AsyncGenerator[tuple[int, str, str] | None], until: float) -> AsyncGenerator[bytes]:
    """Server-Sent Events with LF only: CRLF breaks clients in the field. Silence is a comment. The stream ends
    with the token that opened it; the client comes back with a new one and its Last-Event-ID. So it does when the database
    goes away in the middle.
    """
    try:
        async with aclosing(events):
            async for event in events:
                if time.time() > until:
                    return
                yield _said(event)
    except DATABASE_AWAY as error:
        log.warning("stream.ended", action="stream.ended", error=type(error).__name__)


def _said(event: tuple[int, str, str] | None) -> bytes:
    if event is None:
        return b": still here\n\n"
    number, kind, data = event
    return f"id: {number}\nevent: {kind}\ndata: {data}\n\n".encode()
