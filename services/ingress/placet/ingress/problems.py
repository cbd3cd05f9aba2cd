"""How what goes wrong is answered: as RFC 9457 problems, from which the caller learns nothing of the inside."""

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from placet.ingress.domain import Problem
from placet.service.database import TRANSIENT

log = structlog.get_logger()


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
    headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'} if problem.status == 401 else None
    return JSONResponse(problem.body(), problem.status, headers, media_type="application/problem+json")


async def _no_route(request: Request, error: Exception) -> Response:
    """A path or a method that the API does not have."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "refused")
    return await _problem(request, Problem(status, code, f"the API has no {request.method} {request.url.path}"))


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
