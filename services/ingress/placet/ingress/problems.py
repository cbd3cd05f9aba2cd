"""How what goes wrong is answered: as RFC 9457 problems, from which the caller learns nothing of the inside."""

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from placet.ingress.domain import Problem
from placet.service.database import TRANSIENT

log = structlog.get_logger()

_TOKEN_ERRORS = {
    "authorization_repeated": "invalid_request",
    "invalid_token": "invalid_token",
    "scope_missing": "insufficient_scope",
    "not_an_approver": "insufficient_scope",
}
"""What RFC 6750 calls our codes."""


def answer_problems(app: FastAPI) -> None:
    """Let the application answer every error in this way."""
    app.add_exception_handler(Problem, _problem)
    for kind in TRANSIENT:
        app.add_exception_handler(kind, _unavailable)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(Exception, _fault)


async def _problem(_request: Request, problem: Exception) -> Response:
    if not isinstance(problem, Problem):
        raise problem
    return JSONResponse(problem.body(), problem.status, _challenge(problem), media_type="application/problem+json")


def _challenge(problem: Problem) -> dict[str, str]:
    """What RFC 6750 wants said when the token is at fault: no error when there was none, and which scope it lacks."""
    error = _TOKEN_ERRORS.get(problem.code)
    if error is None and problem.status != 401:
        return {}
    told = {"realm": "placet", "error": error, "scope": problem.members.get("scope")}
    return {"WWW-Authenticate": "Bearer " + ", ".join(f'{name}="{value}"' for name, value in told.items() if value)}


async def _no_route(request: Request, error: Exception) -> Response:
    """A path or a method that the API does not have."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "refused")
    response = await _problem(request, Problem(status, code, f"the API has no {request.method} {request.url.path}"))
    if status == 405:
        response.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return response


def _methods(request: Request) -> set[str]:
    """What the path can be asked with, by all of its routes: Starlette's own answer names those of the first."""
    found = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in found for method in route.methods}


async def _unavailable(request: Request, error: Exception) -> Response:
    """The database is away for a while: nothing was lost, and the same request is safe to send again."""
    log.warning("http.unavailable", action="http.unavailable", path=request.url.path, error=type(error).__name__)
    problem = Problem(503, "unavailable", "a part of the system is away for a moment; send the request again")
    response = await _problem(request, problem)
    response.headers["Retry-After"] = "1"
    return response


async def _fault(request: Request, error: Exception) -> Response:
    """A fault of ours. The log has it; the caller learns nothing of the inside."""
    log.error("http.failed", action="http.failed", path=request.url.path, exc_info=error)
    return await _problem(request, Problem(500, "internal_error", "the request failed by a fault of ours"))
