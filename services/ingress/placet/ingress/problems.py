"""How what goes wrong is answered: as RFC 9457 problems, from which the caller learns nothing of the inside."""

import traceback

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from placet.ingress.domain import Problem
from placet.service.database import DATABASE_AWAY
from placet.service.logs import first_line

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
    for kind in DATABASE_AWAY:
        app.add_exception_handler(kind, _unavailable)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_middleware(Faults)


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
    """A path or a method that the API does not have, or whatever else the frame refuses by itself."""
    if not isinstance(error, HTTPException):
        raise error
    status, said = error.status_code, str(error.detail)
    code = {404: "not_found", 405: "method_not_allowed"}.get(status)
    detail = f"the API has no {request.method} {request.url.path}" if code else said
    response = await _problem(request, Problem(status, code or "refused", detail))
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


async def _left(_request: Request, _error: Exception) -> Response:
    """The client hung up before its body was whole: nobody is there to be answered."""
    return Response(status_code=400)


class Faults:
    """Answers what nobody expected: a fault of ours. The log has where it was; the caller learns nothing of the inside.

    Not a handler of the frame's: what that has handled it raises once more, and the server then writes down all that the
    error says. A database's error says which row it is about, and that is nobody's business (O3).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer. An answer that has begun is cut off by the server, for it is not whole."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            frames = "".join(traceback.format_tb(error.__traceback__))
            log.error("http.failed", action="http.failed", path=scope["path"], error=first_line(error), frames=frames)
            if not begun:
                problem = Problem(500, "internal_error", "the request failed by a fault of ours")
                await (await _problem(Request(scope), problem))(scope, receive, send)
