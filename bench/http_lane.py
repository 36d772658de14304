"""HTTP over bare sockets, so that the measured cost is the server's and not the client's."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

OPEN_LIMIT_S = 30.0


def request(method: str, path: str, key: str, body: bytes | None = None, **headers: str) -> bytes:
    """Return the bytes of one request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: bench", *([f"X-API-Key: {key}"] if key else [])]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def status_of(head: bytes) -> int:
    """Return the status of an answer."""
    return int(head[9:12])


def length_of(head: bytes) -> int:
    """Return the announced length of the body."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise ValueError(f"an answer without a length: {head[:200]!r}")


class Lane(asyncio.Protocol):
    """One keep-alive connection that sends one request after another."""

    def __init__(self) -> None:
        self._buffer = b""
        self._wanted = 0
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._wanted:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head = self._buffer[:end]
            self._wanted = end + 4 + length_of(self._head)
        if len(self._buffer) >= self._wanted:
            body = self._buffer[len(self._head) + 4 : self._wanted]
            self._buffer, self._wanted = self._buffer[self._wanted :], 0
            assert self._answer is not None
            self._answer.set_result((status_of(self._head), body))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server hung up"))

    async def ask(self, what: bytes) -> tuple[int, bytes]:
        """Send a request; return the status and body of its answer."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(what)
        return await self._answer

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


class Follower(asyncio.Protocol):
    """One connection that follows a stream and keeps each frame with its time of arrival."""

    def __init__(self, what: bytes) -> None:
        self._what = what
        self._raw = b""
        self._text = b""
        self.status = 0
        self.frames: list[tuple[float, bytes]] = []
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._transport.write(self._what)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._raw += data
        if not self.status:
            head, gap, rest = self._raw.partition(b"\r\n\r\n")
            if not gap:
                return
            self.status, self._raw = status_of(head), rest
        self._unwrap()
        *frames, self._text = self._text.split(b"\n\n")
        self.frames += [(now, frame) for frame in frames]
        if frames and not self.opened.done():
            self.opened.set_result(None)

    def _unwrap(self) -> None:
        """Take the complete chunks off the wire."""
        while True:
            line, gap, rest = self._raw.partition(b"\r\n")
            if not gap:
                return
            size = int(line, 16)
            if len(rest) < size + 2:
                return
            if not size:
                # The answer has ended; otherwise the connection would be kept for another request.
                self._transport.close()
                return
            self._text += rest[:size]
            self._raw = rest[size + 2 :]

    def connection_lost(self, error: Exception | None) -> None:
        for future in (self.opened, self.ended):
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


def fields(frame: bytes) -> Mapping[str, bytes]:
    """Return the fields of a frame by name; the heartbeat has none."""
    found: dict[str, bytes] = {}
    for line in frame.split(b"\n"):
        name, _, value = line.partition(b":")
        if name:
            found[name.decode()] = value.removeprefix(b" ")
    return found
