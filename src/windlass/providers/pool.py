"""Connections to one provider, kept for the next request.

httpx's pool checks every connection for every request, one request at a time. With 64 open connections a poll costs
eight times the processor time that it costs here, where the most recently used connection is used next. All requests go
to one origin, so there is nothing to search.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

# Shorter than most servers keep a connection: a request on a closing connection is lost.
KEEP_S = 4.0
# Failures below HTTP, and replies that are not HTTP.
TIMEOUTS = (httpcore.TimeoutException, httpx.TimeoutException, TimeoutError)
LOSSES = (
    httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, httpcore.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable, httpx.TransportError, OSError,
)  # fmt: skip


def is_proxied(scheme: str, host: str) -> bool:
    """Whether the environment sends requests to this host through a proxy."""
    found = getproxies()
    return bool(found.get(scheme) or found.get("all")) and not proxy_bypass(host)


class Pool(httpx.AsyncBaseTransport):
    """Connections to one origin, as many as there are concurrent requests. The caller limits those."""

    def __init__(self, certificates: ssl.SSLContext) -> None:
        self._certificates = certificates
        self._idle: list[httpcore.AsyncHTTPConnection] = []
        self._is_closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request. The connection returns to the pool when the answer has been read or dropped."""
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        connection = await self._connection(asked.url.origin)
        try:
            answer = await connection.handle_async_request(asked)
        except BaseException:
            await connection.aclose()
            raise
        body = _Body(answer, lambda: self._give_back(connection))
        return httpx.Response(answer.status, headers=answer.headers, stream=body, extensions=answer.extensions)

    async def aclose(self) -> None:
        """Close the idle connections."""
        self._is_closed = True
        while self._idle:
            await self._idle.pop().aclose()

    async def _connection(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_available() and not connection.has_expired():
                return connection
            await connection.aclose()
        return httpcore.AsyncHTTPConnection(
            origin=origin, ssl_context=self._certificates, keepalive_expiry=KEEP_S, retries=0
        )

    async def _give_back(self, connection: httpcore.AsyncHTTPConnection) -> None:
        if self._is_closed or not connection.is_available():
            await connection.aclose()
        else:
            self._idle.append(connection)


class _Body(httpx.AsyncByteStream):
    """The body of an answer. Repeated closing has no effect."""

    def __init__(self, answer: httpcore.Response, done: Callable[[], object]) -> None:
        self._answer = answer
        self._done: Callable[[], object] | None = done

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._answer.aiter_stream():
            yield part

    async def aclose(self) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        try:
            await self._answer.aclose()
        finally:
            await done()  # type: ignore[misc]
