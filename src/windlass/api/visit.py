"""The state of a request on its way through the service: each stage adds facts for the later stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.types import Scope as AsgiScope

from windlass.core.caller import CallerContext
from windlass.core.errors import Broken

_KEY = "windlass.visit"
# The route of a request that matched none.
NO_ROUTE = "none"


@dataclass(slots=True)
class Visit:
    """The facts known so far. `address` is the client's, as far as its proxies are trusted."""

    request_id: str
    address: str
    caller: CallerContext | None = None
    route: str = NO_ROUTE
    operation: str = "read"
    # Headers of any response: how much of the caller's limit is left.
    headers: Sequence[tuple[bytes, bytes]] = ()


def put_visit(scope: AsgiScope, visit: Visit) -> None:
    """Store the visit in the scope for the later stages."""
    scope[_KEY] = visit


def visit_of(request: HTTPConnection) -> Visit:
    """Return the visit of this request."""
    visit = request.scope.get(_KEY)
    if not isinstance(visit, Visit):
        raise Broken("a request bypassed the edge of the service")
    return visit
