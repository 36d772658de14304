"""Bodies with a tag (ETag, If-None-Match) and in ranges (Range), as in RFC 9110. Supports one range per request."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from windlass.core.errors import BadRange

PIECE_BYTES = 1024 * 1024
JSON = "application/json"
_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))")
# Content-addressed data never changes, but only its owner may see it, so no shared cache may keep it.
IMMUTABLE = "private, max-age=31536000, immutable"


class Body(Protocol):
    """Bytes that can be read in pieces."""

    @property
    def tag(self) -> str:
        """Return a tag that differs when the bytes do."""
        ...

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        ...

    async def part(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start` on."""
        ...


@dataclass(frozen=True, slots=True)
class InMemory:
    """A body in memory."""

    body: bytes

    @property
    def tag(self) -> str:
        """Return a hash of the content."""
        return hashlib.sha256(self.body).hexdigest()[:32]

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return len(self.body)

    async def part(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start` on."""
        return self.body[start : start + length]


def tagged(request: Request, body: bytes, media_type: str = JSON) -> Response:
    """Return the whole body, or 304 if the client has it."""
    tag = f'"{InMemory(body).tag}"'
    if is_known(request, tag):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, media_type=media_type, headers={"ETag": tag})


async def ranged(request: Request, body: Body, *, media_type: str = JSON, cache: str | None = None) -> Response:
    """Return the body, or its requested range."""
    tag = f'"{body.tag}"'
    headers = {"ETag": tag, "Accept-Ranges": "bytes"}
    if cache is not None:
        headers["Cache-Control"] = cache
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    wanted = _wanted(request, tag, body.size)
    start, length = wanted or (0, body.size)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{body.size}"
    headers["Content-Length"] = str(length)
    # Reads the first piece before the response starts, so that an unavailable store can still become an error response.
    first = await body.part(start, min(length, PIECE_BYTES))
    return StreamingResponse(
        _pieces(body, start, length, first),
        status_code=200 if wanted is None else 206,
        media_type=media_type,
        headers=headers,
    )


async def _pieces(body: Body, start: int, length: int, first: bytes) -> AsyncIterator[bytes]:
    yield first
    for at in range(start + PIECE_BYTES, start + length, PIECE_BYTES):
        yield await body.part(at, min(PIECE_BYTES, start + length - at))


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client already has the body with this tag."""
    known = request.headers.get("if-none-match")
    if known is None:
        return False
    tags = [one.strip().removeprefix("W/") for one in known.split(",")]
    return "*" in tags or tag in tags


def _wanted(request: Request, tag: str, size: int) -> tuple[int, int] | None:
    """Return the start and length of the requested range; None for the whole body.

    Malformed ranges, other units and several ranges also give None: the whole body is a correct response to all of
    them.
    """
    found = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    if found is None or request.headers.get("if-range", tag) != tag:
        return None
    first, last, tail = found.groups()
    if tail is not None:
        start, end = max(0, size - int(tail)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last is not None else size
        if last is not None and int(last) < start:
            return None
    if start >= end:
        raise BadRange(f"there are {size:,} bytes, and none of them is in this range", size=size)
    return start, end - start
