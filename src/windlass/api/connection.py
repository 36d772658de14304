"""One HTTP connection: uvicorn's, with limits on the size and the duration of a client's requests.

uvicorn hands every byte to its parser, which keeps an unfinished header for as long as it grows. Here the bytes are
counted before the parser gets them. Bytes that have not yet yielded a piece of a body are the head of a request, the
framing of a chunk, or trailers. If they exceed `head_max_bytes`, the connection ends.

    made ──► head ──► body ──► answered ──► idle ──► head …
              │         │          │
              └─────────┴──────────┴──► lingering ──► closed

*Lingering* follows a response that is sent before the whole request has arrived. A socket that is closed with unread
data resets its connection, and the client then never reads the response. So the server closes the connection for
writing only, and discards the remaining input, up to a number of bytes and seconds.

`Connections` checks deadlines once a second, so a request needs no timer. Time in which the server does not read,
because the handler is not ready for more, does not count.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from windlass.access.limiter import OverLimit
from windlass.api.connections import Connections
from windlass.api.exchange import Exchange
from windlass.api.problem import MEDIA_TYPE, problem_of
from windlass.api.sse import ABORT, PUSH
from windlass.core.errors import BadRequest, HeadTooLarge, TooSlow, UrlTooLong, WindlassError


class _Transport:
    """The connection's transport as responses see it: closing it lingers while a request is still arriving."""

    __slots__ = ("_connection", "_raw", "write")

    def __init__(self, connection: Connection, raw: asyncio.Transport) -> None:
        self._connection = connection
        self._raw = raw
        self.write = raw.write

    def close(self) -> None:
        self._connection.close()

    def is_closing(self) -> bool:
        return self._connection.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class Connection(HttpToolsProtocol):
    """A connection of the API.

    The handler can abort the connection and write to it at once (`ABORT` and `PUSH` in the scope's extensions). The
    connection logs no requests. uvicorn would log the full path, including a ticket, if any logger has a handler. The
    edge logs the path without the query.
    """

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False
        self._all = connections
        self._limits = connections.limits
        self._raw: asyncio.Transport = None  # type: ignore[assignment]
        # Bytes that the parser took since it last returned a piece of a body or the end of a request.
        self._unread_bytes = 0
        self._is_head = True
        self._is_body = False
        self._body_bytes = 0
        self._is_lingering = False
        self._is_lost = False
        self._lingered_bytes = 0
        self._waited_s = 0.0
        self._unsent_bytes = 0
        self._refusal: WindlassError | None = None

    # ---------------------------------------------------------------- called by `Connections`

    @property
    def is_half_sent(self) -> bool:
        """Return whether the client has yet to send a part of its request."""
        return self._is_head or self._is_body or self._is_lingering

    @property
    def is_idle(self) -> bool:
        """Return whether no request is arriving or being answered."""
        return not self.is_half_sent and not self._is_answering

    @property
    def is_closing(self) -> bool:
        """Return whether the connection can send no further response."""
        return self._is_lingering or self._raw.is_closing()

    def drop(self) -> None:
        """Close at once, without a response."""
        self._raw.abort()

    def tick(self, step_s: float) -> None:
        """Count `step_s` more seconds of waiting for the client, and end the connection if a deadline has passed."""
        limits = self._limits
        if self._is_lingering:
            self._waited_s += step_s
            if self._waited_s > limits.linger_s:
                self._raw.abort()
        elif self.flow.write_paused:
            self._tick_unread(step_s)
        elif self._is_body:
            if self.flow.read_paused or self.cycle.waiting_for_100_continue:
                return
            self._waited_s += step_s
            allowed_s = min(limits.body_s, limits.body_grace_s + self._body_bytes / limits.body_rate_min)
            if self._waited_s > allowed_s:
                self._refuse(TooSlow("the body did not arrive in time"))
        elif self._is_head and not self._is_answering:
            self._waited_s += step_s
            if self._waited_s > limits.head_s:
                self._refuse(TooSlow(f"the head of the request did not arrive within {limits.head_s:g} s"))
        elif self.is_idle:
            self._waited_s += step_s
            if self._waited_s > self.timeout_keep_alive:
                self._raw.close()

    def _tick_unread(self, step_s: float) -> None:
        left = self._raw.get_write_buffer_size()
        self._waited_s = self._waited_s + step_s if left == self._unsent_bytes else 0.0
        self._unsent_bytes = left
        if self._waited_s > self._limits.unread_s:
            self._raw.abort()

    @property
    def _is_answering(self) -> bool:
        # None before the first request, although uvicorn's annotation denies it.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    # ---------------------------------------------------------------- asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, or refuse it."""
        super().connection_made(transport)
        self._raw = transport
        self.transport = _Transport(self, transport)  # type: ignore[assignment]
        refusal = self._all.enter(self, self.client[0] if self.client else None)
        if refusal is not None:
            self._write(refusal)
            self._is_lost = True
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._is_lost = True
        self._all.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser in pieces no larger than the rest of the head may be."""
        if self._is_lingering or self._is_lost:
            self._throw_away(len(data))
            return
        if not self._is_body and not self._is_head:
            self._is_head, self._waited_s = True, 0.0
        rest = memoryview(data)
        while rest:
            piece = rest[: self._limits.head_max_bytes - self._unread_bytes]
            self._unread_bytes += len(piece)
            if not self._feed(piece):
                return
            if self._unread_bytes >= self._limits.head_max_bytes:
                self._refuse(self._head_too_large())
                return
            rest = rest[len(piece) :]
        self._all.moved(self)

    def _feed(self, piece: memoryview) -> bool:
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            # The upgrade is ignored and the request is answered. The parser reads nothing after it.
            self.cycle.keep_alive = False
            return False
        except httptools.HttpParserError:
            self._refuse(self._refusal or BadRequest("this is not an HTTP/1.1 request"))
            return False
        return not self._is_lost and not self._is_lingering

    def _throw_away(self, count: int) -> None:
        self._lingered_bytes += count
        if self._lingered_bytes > self._limits.linger_max_bytes:
            self._raw.abort()

    # ---------------------------------------------------------------- the parser

    def on_message_begin(self) -> None:
        """Start a request."""
        super().on_message_begin()
        self._is_head, self._waited_s, self._body_bytes = True, 0.0, 0
        self.scope["extensions"] = {ABORT: self._raw.abort}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        """Take a piece of the URL."""
        super().on_url(url)
        if len(self.url) > self._limits.url_max_bytes:
            self._stop(UrlTooLong(f"the URL is over {self._limits.url_max_bytes:,} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a complete header. Trailers are ignored: the request was judged by its headers."""
        if self._is_body:
            return
        super().on_header(name, value)
        if len(self.headers) > self._limits.headers_max:
            self._stop(HeadTooLarge(f"there are more than {self._limits.headers_max} headers"))

    def on_headers_complete(self) -> None:
        """Start the handler of a request whose head is complete."""
        if len(self.pipeline) >= self._limits.pipelined_max:
            self._stop(BadRequest(f"more than {self._limits.pipelined_max} requests wait on this connection"))
        self._complete_scope()
        self._is_head, self._is_body, self._waited_s = False, True, 0.0
        before: RequestResponseCycle | None = self.cycle
        self.cycle = Exchange(
            self.scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,
            self.server_state.default_headers,
            asyncio.Event(),
            self.expect_100_continue,
            self.scope["http_version"] != "1.0" and self.parser.should_keep_alive(),
            self.on_response_complete,
        )
        self.scope["extensions"][PUSH] = self.cycle.push  # type: ignore[assignment]
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            # An earlier request is still being answered, so this request waits.
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _complete_scope(self) -> None:
        """Add the parts of the scope that need the whole head. There are no web sockets, so upgrades are ignored."""
        scope, parsed = self.scope, httptools.parse_url(self.url)
        path = parsed.path.decode("ascii")
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = self.parser.get_http_version()
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = parsed.path
        scope["query_string"] = parsed.query or b""

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unread_bytes = 0
        self._body_bytes += len(body)
        if self.cycle.response_complete:
            self._throw_away(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request: it has arrived completely."""
        self._unread_bytes, self._waited_s = 0, 0.0
        self._is_head = self._is_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on after a response was written. `tick` counts how long the connection is idle."""
        self.server_state.total_requests += 1
        self._waited_s = 0.0
        if not self.is_closing:
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
        self._all.moved(self)

    def _stop(self, error: WindlassError) -> None:
        """Stop the parser from within one of its callbacks."""
        self._refusal = error
        raise error

    def _head_too_large(self) -> WindlassError:
        if self._is_head and not self.headers and self.url:
            return UrlTooLong(f"the URL is over {self._limits.url_max_bytes:,} bytes")
        return HeadTooLarge(f"the request's head is over {self._limits.head_max_bytes:,} bytes")

    # ---------------------------------------------------------------- ending

    def close(self) -> None:
        """Close after the pending output is written. Linger while a request is still arriving."""
        if self._is_body and not self._is_lost and not self._is_lingering:
            self._linger()
        else:
            self._raw.close()

    def _refuse(self, error: WindlassError) -> None:
        """Answer the arriving request with an error, unless another response is under way, and end the connection."""
        if self.is_closing:
            return
        if self._is_body and self._is_answering and not self.cycle.response_started and not self.pipeline:
            # Tells the handler that waits for the body that no more of it will arrive.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        elif self._is_body or self._is_answering:
            # This request already has its response, or an earlier request is being answered.
            self._raw.abort()
            return
        self._write(error)
        self._linger()

    def _linger(self) -> None:
        self._is_lingering, self._waited_s = True, 0.0
        self.flow.resume_reading()
        self._raw.write_eof()
        self._all.moved(self)

    def _write(self, error: WindlassError) -> None:
        request_id = secrets.token_hex(16)
        problem = problem_of(error, instance="", request_id=request_id)
        body = problem.model_dump_json().encode()
        told = {"Retry-After": str(error.window.retry_after_s), **error.headers} if isinstance(error, OverLimit) else {}
        head = "".join(f"{name.lower()}: {value}\r\n" for name, value in told.items())
        head += (
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nx-request-id: {request_id}\r\n"
            "cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
        )
        self._raw.write(STATUS_LINE[problem.status] + head.encode() + body)
