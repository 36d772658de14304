"""The edge of the service, below FastAPI: request ids, the size of bodies, headers of every answer, the access log.

The size of heads and all deadlines are below it, in `api/connection.py`.

Plain ASGI, so that it also covers what no route answers, and costs streams nothing.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Iterable
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from windlass.api.address import client_address
from windlass.api.parts import Parts
from windlass.api.visit import Visit, put_visit
from windlass.core.errors import TooLarge
from windlass.telemetry import logs

ALIAS = "/api/v1"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
# Also on answers that no handler made.
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_NO_STORE = (b"cache-control", b"no-store")
_log = logging.getLogger("windlass.access")


class Edge:
    """Around the whole app."""

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app = app
        self._meters = parts.meters
        self._body_max = parts.settings.body_max_bytes
        self._proxies = frozenset(parts.settings.proxies)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = Visit(_request_id(scope["headers"]), client_address(scope, self._proxies))
        put_visit(scope, visit)
        _strip_alias(scope)
        logs.request_id.set(visit.request_id)
        began_s = time.perf_counter()
        tracer = self._meters.tracer
        span = None if tracer is None else tracer.request(_header(scope["headers"], b"traceparent"), uuid4())

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._tell(scope, visit, message["status"], time.perf_counter() - began_s)
                if span is not None:
                    span.end(scope["method"], visit.route, message["status"], visit.request_id)
                message["headers"] = _with_ours(message.get("headers", ()), visit)
            await send(message)

        await self._app(scope, _capped(scope, receive, self._body_max), told)

    def _tell(self, scope: AsgiScope, visit: Visit, status: int, seconds: float) -> None:
        self._meters.answered(scope["method"], visit.route, status, visit.operation, seconds)
        if _log.isEnabledFor(logging.INFO):
            # The path, never the query: a ticket may stand in it.
            _log.info(
                "%s %s %s %.1f ms",
                scope["method"],
                scope["path"][:300],
                status,
                seconds * 1000,
                extra={
                    "request_id": visit.request_id,
                    "caller": visit.caller.caller_id if visit.caller else None,
                    "route": visit.route,
                    "status": status,
                },
            )


def _header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in headers if name == wanted), None)


def _request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value.decode()
    return secrets.token_hex(16)


def _strip_alias(scope: AsgiScope) -> None:
    path: str = scope["path"]
    if path.startswith(f"{ALIAS}/"):
        scope["path"] = path.removeprefix(ALIAS)
        scope["raw_path"] = scope.get("raw_path", b"").removeprefix(ALIAS.encode())


def _with_ours(headers: Iterable[tuple[bytes, bytes]], visit: Visit) -> list[tuple[bytes, bytes]]:
    found = [*headers, *_ALWAYS, (b"x-request-id", visit.request_id.encode())]
    if not any(name.lower() == b"cache-control" for name, _ in found):
        found.append(_NO_STORE)
    found.extend((name.lower().encode(), value.encode()) for name, value in visit.headers.items())
    return found


def _capped(scope: AsgiScope, receive: Receive, most: int) -> Receive:
    """`receive`, counting: a body is refused by what it says of its size, else by what has come of it."""
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    got = int(declared) if declared.isdigit() and len(declared) < 20 else most + 1
    over = TooLarge(f"the body is over {most:,} bytes", remedy="Put large data in a store that the steps can read")
    if got <= most:
        got = 0

    async def counted() -> Message:
        nonlocal got
        if got > most:
            raise over
        message = await receive()
        if message["type"] == "http.request":
            got += len(message.get("body", b""))
            if got > most:
                raise over
        return message

    return counted
