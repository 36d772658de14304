"""Building blocks for the routes of an extension: the guard and the dependencies that Windlass's own routes use.

    router = http.router("notes")

    @router.get("/notes", operation_id="notes.list")
    @http.guard(http.Scope.JOBS_READ)
    async def notes(caller: http.Caller, parts: http.Has) -> list[Note]: ...

A route without a guard is refused when the process starts.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from windlass.api.guard import Caller, JobId, RequestId, guard
from windlass.api.guard import guarded_router as router
from windlass.core.caller import Scope
from windlass.core.errors import Broken
from windlass.extension.facade import Parts

__all__ = ["Caller", "Has", "JobId", "RequestId", "Scope", "guard", "router"]


async def _parts(request: Request) -> Parts:
    owners = request.app.state.extension_routes
    found = owners.get(id(request.scope.get("route")))
    if not isinstance(found, Parts):
        raise Broken("only a route of an extension can use an extension's parts")
    return found


Has = Annotated[Parts, Depends(_parts)]
