"""Finds the route of a request and calls it.

Starlette tries the pattern of each route in turn. This module looks up a path without parameters in a dictionary. It
searches a path with parameters among the routes with the same first segment. The first route that matches answers, as
with Starlette. FastAPI gets the routes that need it (`api/direct.py` decides) and the paths that no route answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from windlass.api.guard import GuardedRoute, StrictRequest

Found = tuple[GuardedRoute, dict[str, Any]]


class Dispatch:
    """Calls the direct routes. `rest` is FastAPI's app, which serves all routes."""

    def __init__(self, routes: Sequence[BaseRoute], rest: ASGIApp) -> None:
        self._rest = rest
        guarded = [route for route in routes if isinstance(route, GuardedRoute)]
        self._by_segment: dict[str, list[GuardedRoute]] = {}
        # Only literal first segments tell paths apart; a route whose first segment is a pattern is in every group.
        firsts = [_first(route.path_format) for route in guarded]
        for literal in {first for first in firsts if "{" not in first}:
            named = zip(guarded, firsts, strict=True)
            self._by_segment[literal] = [route for route, first in named if first == literal or "{" in first]
        self._exact: dict[tuple[str, str], Found | None] = {}
        for route in guarded:
            if "{" not in route.path_format:
                for method in route.methods:
                    self._exact[method, route.path_format] = self._search(method, route.path_format)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        found = self.find(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await self._rest(scope, receive, send)
            return
        route, values = found
        scope["route"], scope["endpoint"], scope["path_params"] = route, route.endpoint, values
        answer = await route.guarded(StrictRequest(scope, receive))
        await answer(scope, receive, send)

    def find(self, method: str, path: str) -> Found | None:
        """Return the direct route of a path with the values of its parameters, if there is one."""
        try:
            return self._exact[method, path]
        except KeyError:
            return self._search(method, path)

    def _search(self, method: str, path: str) -> Found | None:
        for route in self._by_segment.get(_first(path), ()):
            if method not in route.methods:
                continue
            found = route.path_regex.match(path)
            if found is not None:
                values = found.groupdict()
                for name, value in values.items():
                    values[name] = route.param_convertors[name].convert(value)
                return (route, values) if route.is_direct else None
        return None


def _first(path: str) -> str:
    """Return the first segment of a path."""
    end = path.find("/", 1)
    return path if end < 0 else path[:end]
