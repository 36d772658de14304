"""A small HTTP/1.1 server that may also misbehave: hang up instead of answering, or cut an answer short."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httptools
import msgspec

BODY_MAX_BYTES = 64 << 20
_REASONS = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 400: "Bad Request", 404: "Not Found"}


@dataclass(slots=True)
class Request:
    """A request. Header names are lower case; `target` is the path and the query as sent."""

    method: str = ""
    target: str = ""
    path: str = ""
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Any:
        """Decode the body; None if it is no JSON."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. With `cut` the body ends before its announced length, and the connection is closed."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


def reply(value: Any, status: int = 200, **headers: str) -> Reply:
    """Return a JSON answer."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, msgspec.json.encode(value), {"content-type": "application/json", **named})


Handler = Callable[[Request], Awaitable[Reply | None]]


class Connection(asyncio.Protocol):
    """One connection; it answers its requests in order. A handler that returns None closes it."""

    def __init__(self, handler: Handler, open_ones: set[Connection]) -> None:
        self._handler = handler
        self._open_ones = open_ones
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._request = Request()
        self._url = b""
        self._parts: list[bytes] = []
        self._size = 0
        self._waiting: list[tuple[Request, bool]] = []
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = transport  # type: ignore[assignment]
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop. A running request is finished: a real provider does not notice either."""
        self._transport = None
        self._open_ones.discard(self)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.hang_up()

    def hang_up(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def on_message_begin(self) -> None:
        """Called by the parser."""
        self._request, self._url, self._parts, self._size = Request(), b"", [], 0

    def on_url(self, url: bytes) -> None:
        """Called by the parser."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self._request.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        if self._request.headers.get("expect") == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._size += len(body)
        if self._size > BODY_MAX_BYTES:
            self.hang_up()
            return
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        request = self._request
        request.target = self._url.decode("latin-1")
        parts = urlsplit(request.target)
        request.method = self._parser.get_method().decode("ascii")
        request.path = unquote(parts.path)
        request.query = dict(parse_qsl(parts.query, keep_blank_values=True)) if parts.query else {}
        request.body = b"".join(self._parts)
        self._waiting.append((request, self._parser.should_keep_alive()))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._answer())

    async def _answer(self) -> None:
        try:
            while self._waiting:
                request, is_kept = self._waiting.pop(0)
                answer = await self._handler(request)
                if self._transport is None:
                    return
                if answer is None:
                    self.hang_up()
                    return
                self._write(answer, is_kept)
        finally:
            self._task = None

    def _write(self, answer: Reply, is_kept: bool) -> None:
        if self._transport is None:
            return
        is_kept = is_kept and not answer.cut
        length = len(answer.body) + (10 if answer.cut else 0)
        lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Answer')}", f"content-length: {length}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        if not is_kept:
            lines.append("connection: close")
        head = "\r\n".join(lines) + "\r\n\r\n"
        self._transport.write(head.encode("latin-1") + answer.body)
        if not is_kept:
            self._transport.close()


async def serve(handler: Handler, host: str, port: int) -> tuple[asyncio.Server, set[Connection]]:
    """Start a server; return it and its open connections."""
    loop = asyncio.get_running_loop()
    open_ones: set[Connection] = set()
    server = await loop.create_server(lambda: Connection(handler, open_ones), host, port, backlog=4096)
    return server, open_ones
