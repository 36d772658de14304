"""Responses whose body is already encoded."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_JSON = (b"content-type", b"application/json")


class JsonAnswer(Response):
    """A JSON response. Header names must be in lower case."""

    def __init__(self, body: bytes, status_code: int = 200, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.status_code = status_code
        self.background = None
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _JSON, *headers]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})
