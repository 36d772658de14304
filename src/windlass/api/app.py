"""The service as a FastAPI app: the routes in their order, and the responses to requests that match no route."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from windlass.api import pages
from windlass.api.admission import Refusals
from windlass.api.dispatch import Dispatch
from windlass.api.edge import HttpEdge
from windlass.api.guard import GuardedRoute
from windlass.api.openapi import document
from windlass.api.parts import Extra, Parts
from windlass.api.problem import answer_to
from windlass.api.routes import (
    approvals,
    audit,
    budgets,
    bulk,
    callbacks,
    console,
    control,
    demo,
    docs,
    graph,
    health,
    incoming,
    jobs,
    keys,
    me,
    overview,
    policy,
    providers,
    recipes,
    rerun,
    results,
    session,
    steps,
    streams,
    undo,
    webhooks,
    workers,
)
from windlass.api.site import DocsSite
from windlass.api.static import Console
from windlass.core.errors import BadSetting, Broken, MethodNotAllowed

# The first matching route answers, so a literal path must come before a path with a parameter in the same place.
ROUTERS: tuple[APIRouter, ...] = (
    streams.router,
    bulk.router,
    jobs.router,
    # Providers may call this route a thousand times a second, and each path before it is tried first.
    incoming.router,
    control.router,
    undo.router,
    rerun.router,
    results.router,
    graph.router,
    steps.router,
    callbacks.router,
    webhooks.router,
    approvals.router,
    providers.router,
    budgets.router,
    recipes.router,
    overview.router,
    me.router,
    keys.router,
    audit.router,
    policy.router,
    workers.router,
    demo.router,
    health.router,
    pages.router,
    docs.router,
    session.router,
    # Last, because it matches every path below /console that no other route has.
    console.router,
)

_NAMED = re.compile(r"\{[^}]*\}")

# FastAPI would send its own spans and logs, which contain data of callers. The edge makes our spans.
_NO_TELEMETRY: Any = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


class HttpService(FastAPI):
    """The app. Calls hot routes without Starlette's middleware, and passes all other requests to FastAPI."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["app"] = self
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        await self.middleware_stack(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Build the stack. FastAPI calls this with the first request, when all routes are present."""
        return HttpEdge(Dispatch(self.router.routes, super().build_middleware_stack()), self.state.parts)


def create(parts: Parts) -> FastAPI:
    """Return the app that serves these parts."""
    app = bare()
    app.state.extension_routes = add_extras(app, parts.extras)
    app.state.parts = parts
    app.state.refusals = Refusals()
    app.state.console = Console()
    app.state.site = DocsSite()
    return app


def add_extras(app: FastAPI, extras: Sequence[Extra]) -> dict[int, Any]:
    """Add the routes of extensions after ours. Return the parts of each route's extension, by the route's id.

    An unguarded route or a route whose path is taken is refused, and the process does not start.
    """
    owners: dict[int, Any] = {}
    taken = {claim: "Windlass" for route in app.router.routes for claim in _claims(route)}
    for extra in extras:
        for route in extra.routes:
            if not isinstance(route, GuardedRoute):
                raise _refused(extra, f"{route} is not guarded: make its router with windlass.extension.http.router()")
            if route.path_format == "/" or route.path_format.startswith(("/console", "/docs", "/api/")):
                raise _refused(extra, f"the path {route.path_format} is not for extensions")
            for claim in _claims(route):
                other = taken.setdefault(claim, extra.name)
                if other != extra.name:
                    raise _refused(extra, f"{claim} is taken by {other}")
            app.router.routes.append(route)
            owners[id(route)] = extra.parts
    return owners


def _claims(route: BaseRoute) -> list[str]:
    """Return the claims that only one route may have: each method of its path, and its operation id."""
    if not isinstance(route, GuardedRoute):
        return []
    path = _NAMED.sub("{}", route.path_format)
    return [*(f"{method} {path}" for method in sorted(route.methods or ())), f"the operation {route.unique_id}"]


def _refused(extra: Extra, what: str) -> BadSetting:
    return BadSetting(
        f"the extension {extra.name} of {extra.where}: {what}",
        remedy="Upgrade or uninstall it, or name the extensions to load with `extensions`",
    )


def bare() -> FastAPI:
    """Return an app with the routes alone, for making the documentation."""
    app = HttpService(
        title="Windlass",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
    )
    for router in ROUTERS:
        # One flat list: its order is the order of matching, and each path is tried once.
        app.router.routes.extend(router.routes)
    for route in app.router.routes:
        if not isinstance(route, GuardedRoute):
            raise Broken(f"{route} is not guarded: make it with guarded_router()")
    app.add_exception_handler(HTTPException, _unanswered)
    app.openapi = lambda: _documented(app)  # type: ignore[method-assign]
    return app


def _documented(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = document(app)
    return app.openapi_schema


async def _unanswered(request: Request, error: Exception) -> Response:
    """Answer a request with an unknown path, or with a method that the path does not have."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = sorted(
            {
                method
                for route in request.app.router.routes
                if isinstance(route, GuardedRoute) and route.matches(request.scope)[0] is not Match.NONE
                for method in route.methods or ()
            }
        )
        message = f"this path has no {request.method[:20]}"
        return answer_to(request, MethodNotAllowed(message, allowed=tuple(allowed)))
    return answer_to(request, error)
