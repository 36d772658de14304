"""A `requests` session that calls an ASGI app on the loop of the test: neither socket nor thread stands between."""

from __future__ import annotations

import asyncio
import gzip
import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import requests
from requests.adapters import BaseAdapter
from starlette.types import ASGIApp, Message
from urllib3 import HTTPHeaderDict, HTTPResponse

ADDRESS = "http://windlass.test"
# A stream has no end of its own; its first frames are enough.
STREAM_MESSAGES_MAX = 1
ANSWER_LIMIT_S = 60.0


class AsgiAdapter(BaseAdapter):
    """Each request is one turn of the loop, until the app has answered."""

    def __init__(self, app: ASGIApp, runner: asyncio.Runner) -> None:
        super().__init__()
        self._app = app
        self._runner = runner

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        status, headers, body = self._runner.run(self._call(request))
        raw_headers = HTTPHeaderDict([(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers])
        raw = HTTPResponse(io.BytesIO(body), headers=raw_headers, status=status, preload_content=False)
        answer = requests.Response()
        answer.status_code = status
        answer.headers.update(raw_headers)
        answer.raw = raw
        answer.url = str(request.url)
        answer.request = request
        # A case with a cookie is taken for a browser's.
        answer._content = gzip.decompress(body) if raw_headers.get("content-encoding") == "gzip" else body
        return answer

    def close(self) -> None:
        return None

    async def _call(self, request: requests.PreparedRequest) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        body = request.body.encode() if isinstance(request.body, str) else request.body or b""
        started: Message = {}
        chunks: list[bytes] = []
        is_over = asyncio.Event()
        sent = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Message:
            for message in sent:
                return message
            await is_over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
                return
            chunks.append(message.get("body", b""))
            is_stream = any(v.startswith(b"text/event-stream") for n, v in started["headers"] if n == b"content-type")
            if not message.get("more_body") or (is_stream and len(chunks) >= STREAM_MESSAGES_MAX):
                is_over.set()

        async with asyncio.timeout(ANSWER_LIMIT_S):
            await self._app(_scope(request), receive, send)
        return int(started["status"]), list(started["headers"]), b"".join(chunks)


def _scope(request: requests.PreparedRequest) -> Mapping[str, Any]:
    parts = urlsplit(str(request.url))
    raw_path = parts.path.encode("ascii", "surrogateescape")
    headers = [(_bytes(name).lower(), _bytes(value)) for name, value in request.headers.items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": str(request.method),
        "scheme": "http",
        # As uvicorn does it.
        "path": unquote_to_bytes(raw_path).decode("utf-8", "replace"),
        "raw_path": raw_path,
        "query_string": parts.query.encode("ascii", "surrogateescape"),
        "root_path": "",
        "headers": [(b"host", b"windlass.test"), *headers],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 80),
        "state": {},
    }


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("latin-1", "replace")


def session(app: ASGIApp, runner: asyncio.Runner) -> requests.Session:
    """Requests to `ADDRESS` go to the app."""
    made = requests.Session()
    made.trust_env = False
    made.mount(ADDRESS, AsgiAdapter(app, runner))
    return made
