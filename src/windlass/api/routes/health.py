"""Endpoints for load balancers, service managers and Prometheus. They count against no caller's limit."""

from __future__ import annotations

import ipaddress
import time

from starlette.requests import Request
from starlette.responses import Response

from windlass.api.admission import authenticate
from windlass.api.guard import Has, guard, guarded_router
from windlass.api.readiness import Probe
from windlass.api.routes.console import VERSION, console_of
from windlass.api.wire.health import Health, MissingHandler, Readiness, Version
from windlass.core.caller import Scope
from windlass.core.errors import Forbidden
from windlass.telemetry.exposition import CONTENT_TYPE

router = guarded_router("health")


@router.get("/healthz", operation_id="health.live", response_model=Health, summary="Check that the process is alive")
@guard(is_open=True, cost=0)
async def live() -> Health:
    """Returns 200 while the process responds at all. A process that does not respond should be restarted."""
    return Health()


@router.get(
    "/readyz",
    operation_id="health.ready",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "Not ready; `parts` says why."}},
    summary="Check that the process can work",
)
@guard(is_open=True, cost=0)
async def ready(request: Request, parts: Has) -> Response:
    """Returns 200 if the database responds and has this release's schema, and the process's loops run; else 503.

    A process that is not ready should get no requests. It must not be restarted for that: it recovers without help.
    """
    state = await _probe(request).state()
    document = Readiness(
        status="ready" if state.is_ready else "not_ready",
        parts=state.parts,
        engines=state.engines,
        missing_handlers=[
            MissingHandler(queue=one.queue, handler=one.handler, since=one.since, worker=one.worker)
            for one in state.missing
        ],
    )
    headers = {} if state.is_ready else {"Retry-After": "2"}
    return Response(document.model_dump_json(), 200 if state.is_ready else 503, headers, media_type="application/json")


@router.get(
    "/metrics",
    operation_id="health.metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text."}},
    summary="Metrics",
)
@guard(is_open=True, cost=0, codes=("unauthenticated", "forbidden"))
async def metrics(request: Request, parts: Has) -> Response:
    """Returns Prometheus text.

    Needs no key if only this machine can connect; otherwise a key with the scope `admin`.
    """
    if not _is_private(request, parts.settings.listen, parts.settings.proxies):
        caller = await authenticate(request, parts, takes_ticket=False)
        if not caller.has(Scope.ADMIN):
            raise Forbidden(
                "this needs the scope admin", remedy="Or set metrics_listen, and let Prometheus scrape that address"
            )
    return Response(await parts.exposition.text(), headers={"Content-Type": CONTENT_TYPE})


@router.get("/version", operation_id="health.version", response_model=Version, summary="Get the release of the server")
@guard(is_open=True, cost=0)
async def version(request: Request) -> Version:
    """Returns the version of Windlass, and the console that it serves."""
    build = console_of(request).build()
    return Version(version=VERSION, console=build.kind, console_build=build.hash)


def _probe(request: Request) -> Probe:
    state = request.app.state
    if not hasattr(state, "probe"):
        state.probe = Probe(state.parts, time.monotonic)
    probe: Probe = state.probe
    return probe


def _is_private(request: Request, listen: str, proxies: tuple[str, ...]) -> bool:
    """Return whether only this machine can have sent the request: no proxy, and the server listens on loopback only."""
    if proxies or "x-forwarded-for" in request.headers or "forwarded" in request.headers:
        return False
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
