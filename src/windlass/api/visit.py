"""A request on its way through the service: what each stage found out about it, for those that come after."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.requests import HTTPConnection
from starlette.types import Scope as AsgiScope

from windlass.core.caller import CallerContext
from windlass.core.errors import Broken

_KEY = "windlass.visit"
# Of a request that matched no route.
NO_ROUTE = "none"


@dataclass(slots=True)
class Visit:
    """What is known so far. `address` is the client's, as far as proxies can be believed."""

    request_id: str
    address: str
    caller: CallerContext | None = None
    route: str = NO_ROUTE
    operation: str = "read"
    # Told with whatever the answer is: how much of the caller's limit is left.
    headers: dict[str, str] = field(default_factory=dict)


def put_visit(scope: AsgiScope, visit: Visit) -> None:
    """Let the stages that come after know."""
    scope[_KEY] = visit


def visit_of(request: HTTPConnection) -> Visit:
    """What is known of this request."""
    visit = request.scope.get(_KEY)
    if not isinstance(visit, Visit):
        raise Broken("a request came past the edge of the service")
    return visit
