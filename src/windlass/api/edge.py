"""The edge of the service, below FastAPI: request ids, body sizes, headers of every response, the access log.

`api/connection.py` limits the size of heads and enforces all deadlines.

The edge is plain ASGI, so it also covers requests that match no route, and adds no cost to streams.
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
# Also on responses that no handler made.
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_NO_STORE = (b"cache-control", b"no-store")
_log = logging.getLogger("windlass.access")


class HttpEdge:
    """ASGI middleware around the whole app."""

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
        headers = _Wanted(scope["headers"])
        visit = Visit(headers.request_id or secrets.token_hex(16), client_address(scope, self._proxies))
        put_visit(scope, visit)
        _strip_alias(scope)
        logs.request_id.set(visit.request_id)
        began_s = time.perf_counter()
        tracer = self._meters.tracer
        span = None if tracer is None else tracer.request(headers.traceparent, uuid4())

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._tell(scope, visit, message["status"], time.perf_counter() - began_s)
                if span is not None:
                    span.end(scope["method"], visit.route, message["status"], visit.request_id)
                message["headers"] = _with_ours(message.get("headers", ()), visit)
            await send(message)

        await self._app(scope, _capped(headers.length, receive, self._body_max), told)

    def _tell(self, scope: AsgiScope, visit: Visit, status: int, seconds: float) -> None:
        self._meters.answered(scope["method"], visit.route, status, visit.operation, seconds)
        if _log.isEnabledFor(logging.INFO):
            # The path without the query, which may contain a ticket.
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


class _Wanted:
    """The first value of each header that the edge needs. A malformed request id is ignored."""

    __slots__ = ("length", "request_id", "traceparent")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.request_id: str | None = None
        self.traceparent: str | None = None
        self.length: bytes | None = None
        for name, value in headers:
            if name == b"content-length" and self.length is None:
                self.length = value
            elif name == b"x-request-id" and self.request_id is None and _REQUEST_ID.fullmatch(value):
                self.request_id = value.decode()
            elif name == b"traceparent" and self.traceparent is None:
                self.traceparent = value.decode("latin-1")


def _strip_alias(scope: AsgiScope) -> None:
    path: str = scope["path"]
    if path.startswith(f"{ALIAS}/"):
        scope["path"] = path.removeprefix(ALIAS)
        scope["raw_path"] = scope.get("raw_path", b"").removeprefix(ALIAS.encode())


def _with_ours(headers: Iterable[tuple[bytes, bytes]], visit: Visit) -> list[tuple[bytes, bytes]]:
    found = [*headers, *_ALWAYS, (b"x-request-id", visit.request_id.encode()), *visit.headers]
    for name, _ in found:
        if name == b"cache-control":
            return found
    found.append(_NO_STORE)
    return found


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the body is over {most:,} bytes", remedy="Put large data into a store that the steps can read")


def _capped(declared: bytes | None, receive: Receive, most: int) -> Receive:
    """Wrap `receive` to refuse a large body, by its declared size or else by the bytes that have arrived."""
    got = 0
    if declared is not None and (not declared.isdigit() or len(declared) >= 20 or int(declared) > most):
        got = most + 1

    async def counted() -> Message:
        nonlocal got
        if got > most:
            raise _too_large(most)
        message = await receive()
        if message["type"] == "http.request":
            got += len(message.get("body", b""))
            if got > most:
                raise _too_large(most)
        return message

    return counted
