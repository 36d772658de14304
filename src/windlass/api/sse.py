"""Server-sent events: how a frame is written, and the answer that goes on for as long as its client listens.

A client that stops reading must not hold anything of ours. ASGI knows no way to cut a connection off, and a transport
that is only closed waits until its client has taken the rest, which may be for ever; so `api/connection.py` puts a
function that aborts the connection into the scope, under `ABORT`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

HEARTBEAT = b": heartbeat\n\n"
HEARTBEAT_S = 25.0
# How long a client may leave what was sent to it untaken.
SEND_MAX_S = 30.0
ABORT = "windlass.abort"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "Connection": "keep-alive",
    # A proxy that collects an answer before it passes it on would make a stream of nothing.
    "X-Accel-Buffering": "no",
}


def frame(event: str, frame_id: str | None, data: bytes, retry_ms: int | None = None) -> bytes:
    """One frame: encoded once, and the same bytes for whoever gets it. `data` is one line or more."""
    lines = [f"retry: {retry_ms}\n".encode()] if retry_ms is not None else []
    lines.append(f"event: {event}\n".encode())
    if frame_id is not None:
        lines.append(f"id: {frame_id}\n".encode())
    lines.extend(b"data: %b\n" % line for line in data.split(b"\n"))
    return b"%b\n" % b"".join(lines)


class Frames(Protocol):
    """Where a stream's frames come from; `api/hub.py` has it."""

    # Called when the client is to be cut off, from within whatever finds that out.
    on_drop: Callable[[], None] | None

    async def next(self, within_s: float) -> bytes | None:
        """What is to be sent now; None after so much silence; nothing (`b""`) when the stream is over."""
        ...

    def drop(self, reason: str) -> None:
        """Give the client up."""
        ...

    def close(self) -> None:
        """The client is gone, or has been told everything."""
        ...


class EventStream(Response):
    """The answer. It ends when the frames do, or when the client goes."""

    def __init__(self, frames: Frames, *, heartbeat_s: float = HEARTBEAT_S, send_max_s: float = SEND_MAX_S) -> None:
        super().__init__(headers=HEADERS)
        # The length of what has no end is not known.
        del self.headers["content-length"]
        self._frames = frames
        self._heartbeat_s = heartbeat_s
        self._send_max_s = send_max_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send frames until there is nobody to send them to."""
        pump = asyncio.create_task(self._pump(send), name="windlass-stream")
        gone = asyncio.create_task(_gone(receive), name="windlass-stream-gone")
        abort: Callable[[], None] | None = scope.get("extensions", {}).get(ABORT)

        def cut_off() -> None:
            # The pump hangs in a send that would never end.
            pump.cancel()
            if abort is not None:
                abort()

        self._frames.on_drop = cut_off
        try:
            await asyncio.wait((pump, gone), return_when=asyncio.FIRST_COMPLETED)
            if pump.cancelled() and abort is not None:
                # The server must have heard that the connection is gone before it is told that this is all.
                await gone
        finally:
            self._frames.close()
            for task in (pump, gone):
                task.cancel()
            await asyncio.gather(pump, gone, return_exceptions=True)
        if pump.done() and not pump.cancelled() and (error := pump.exception()) is not None:
            raise error

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        while (body := await self._frames.next(self._heartbeat_s)) != b"":
            try:
                async with asyncio.timeout(self._send_max_s):
                    await send({"type": "http.response.body", "body": body or HEARTBEAT, "more_body": True})
            except TimeoutError:
                self._frames.drop("slow")
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
