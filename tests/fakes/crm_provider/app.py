"""The provider over HTTP: the business API that callers know, and the control API that is the test's hand."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fakes.crm_provider.faults import Faults
from fakes.crm_provider.store import Answer, CrmStore, Kind, Operation

Endpoint = Callable[[Request], Awaitable[Response]]

NOT_FOUND = Answer.error(404, "not_found")


class NoteBody(BaseModel):
    """The body of a new note."""

    model_config = ConfigDict(extra="forbid", strict=True)

    body: str = Field(min_length=1)


class CustomerFields(BaseModel):
    """What a test may change of a customer."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    email: str | None = None
    status: str | None = None


def create_app(token: str) -> Starlette:
    """The whole service around a fresh store."""
    provider = Provider(token)
    return Starlette(
        routes=provider.business_routes() + provider.control_routes(),
        exception_handlers={ValidationError: invalid_body},
    )


class Provider:
    """The HTTP face of one store, with the faults in force and the log of requests."""

    def __init__(self, token: str) -> None:
        self._authorization = f"Bearer {token}"
        self._store = CrmStore()
        self._faults = Faults()
        self._requests: list[dict[str, Any]] = []

    def business_routes(self) -> list[Route]:
        """The API of the product that the provider pretends to be."""
        customer = "/tenants/{tenant}/customers/{customer_id}"
        return [
            self._business("GET", customer, self.read_customer),
            self._business("POST", f"{customer}/notes", self.create_note),
            self._business("DELETE", f"{customer}/notes/{{note_id}}", self.delete_note),
            self._business("GET", "/tenants/{tenant}/export", self.export),
            self._business("GET", "/tenants/{tenant}/operations/{key:path}", self.read_operation),
        ]

    def control_routes(self) -> list[Route]:
        """The API of the tests; it asks for no token and is not logged."""
        return [
            Route("/_control/faults", self.read_faults, methods=["GET"]),
            Route("/_control/faults", self.set_faults, methods=["PUT"]),
            Route("/_control/effects", self.read_effects, methods=["GET"]),
            Route("/_control/requests", self.read_requests, methods=["GET"]),
            Route("/_control/reset", self.reset, methods=["POST"]),
            Route("/_control/customers/{tenant}/{customer_id}", self.change_customer, methods=["PUT"]),
        ]

    def _business(self, method: str, path: str, endpoint: Endpoint) -> Route:
        async def guarded(request: Request) -> Response:
            self._log(request)
            if request.headers.get("authorization") != self._authorization:
                return respond(Answer.error(401, "unauthorized"))
            # Read before the wait: a caller who leaves meanwhile has still asked, and gets the effect.
            await request.body()
            await asyncio.sleep(self._faults.slow_seconds)
            return await endpoint(request)

        return Route(path, guarded, methods=[method])

    async def read_customer(self, request: Request) -> Response:
        """One customer, with its revision as the entity tag."""
        customer = self._store.customer(request.path_params["tenant"], request.path_params["customer_id"])
        if customer is None:
            return respond(NOT_FOUND)
        return JSONResponse(asdict(customer), headers={"ETag": f'"{customer.revision}"'})

    async def export(self, request: Request) -> Response:
        """Every customer of the tenant."""
        return JSONResponse({"customers": self._store.export(request.path_params["tenant"])})

    async def read_operation(self, request: Request) -> Response:
        """Query by key: the answer that was, or would have been, received."""
        if self._faults.forget_keys:
            return respond(NOT_FOUND)
        return respond(self._store.executed(request.path_params["tenant"], request.path_params["key"]) or NOT_FOUND)

    async def create_note(self, request: Request) -> Response:
        """Add a note to a customer."""
        note = NoteBody.model_validate_json(await request.body())
        return self._execute(request, "note.create", note.model_dump())

    async def delete_note(self, request: Request) -> Response:
        """Remove a note from a customer."""
        return self._execute(request, "note.delete", {})

    def _execute(self, request: Request, kind: Kind, payload: dict[str, Any]) -> Response:
        if not request.headers.get("idempotency-key"):
            return respond(Answer.error(400, "idempotency_key_required"))
        if self._faults.refuse_status is not None:
            return respond(Answer.error(self._faults.refuse_status, "refused"))
        answer = self._store.execute(operation_in(request, kind, payload), remember=not self._faults.forget_keys)
        return self._faults.spoil(respond(answer)) if answer.is_success else respond(answer)

    async def read_faults(self, request: Request) -> Response:
        """The faults in force, with what is left of the counted ones."""
        return JSONResponse(self._faults.model_dump())

    async def set_faults(self, request: Request) -> Response:
        """Replace all the faults; what is not named is off."""
        self._faults = Faults.model_validate_json(await request.body())
        return await self.read_faults(request)

    async def read_effects(self, request: Request) -> Response:
        """Everything that really happened, in order."""
        return JSONResponse([asdict(effect) for effect in self._store.effects])

    async def read_requests(self, request: Request) -> Response:
        """Every business request received, in order of arrival."""
        return JSONResponse(self._requests)

    async def reset(self, request: Request) -> Response:
        """Back to the seeded state: no faults, no log, no keys."""
        self._store.reset()
        self._faults = Faults()
        self._requests.clear()
        return Response(status_code=204)

    async def change_customer(self, request: Request) -> Response:
        """Change a customer as somebody else would, so that its revision moves."""
        fields = CustomerFields.model_validate_json(await request.body()).model_dump(exclude_none=True)
        customer = self._store.merge_customer(request.path_params["tenant"], request.path_params["customer_id"], fields)
        return JSONResponse(asdict(customer))

    def _log(self, request: Request) -> None:
        self._requests.append(
            {
                "method": request.method,
                "path": request.url.path,
                "operation_key": request.headers.get("idempotency-key"),
                "traceparent": request.headers.get("traceparent"),
                "if_match": request.headers.get("if-match"),
                "at": time.time(),
            }
        )


def operation_in(request: Request, kind: Kind, payload: dict[str, Any]) -> Operation:
    """The operation that a request asks for."""
    if_match = request.headers.get("if-match")
    return Operation(
        tenant=request.path_params["tenant"],
        key=request.headers["idempotency-key"],
        kind=kind,
        customer_id=request.path_params["customer_id"],
        note_id=request.path_params.get("note_id"),
        payload=payload,
        if_match=None if if_match is None else if_match.strip('"'),
    )


def respond(answer: Answer) -> Response:
    """The one place where an answer becomes HTTP."""
    headers = {"Idempotent-Replayed": "true"} if answer.replayed else None
    return JSONResponse(answer.body, status_code=answer.status, headers=headers)


async def invalid_body(request: Request, error: Exception) -> Response:
    """A body that does not fit is the caller's mistake."""
    return respond(Answer.error(422, "invalid_body"))
