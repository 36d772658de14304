"""Server-sent events: a response that lasts for as long as its client listens.

A client that stops reading must not hold resources of the server. ASGI cannot cut off a connection. A closed transport
still waits until its client has taken the rest, which may take for ever. So `api/connection.py` puts a function that
aborts the connection into the scope, under `ABORT`. Under `PUSH` it puts a function that writes at once, because news
for a thousand streams would otherwise wake a thousand tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from windlass.pure.frame import frame as frame

HEARTBEAT = b": heartbeat\n\n"
HEARTBEAT_S = 25.0
# How long a client may leave sent data unread.
SEND_MAX_S = 30.0
ABORT = "windlass.abort"
PUSH = "windlass.push"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "Connection": "keep-alive",
    # A proxy that buffers the response would hold back the stream.
    "X-Accel-Buffering": "no",
}


class Frames(Protocol):
    """The source of a stream's frames; `api/hub.py` implements it."""

    # Called to cut the client off, from within the code that decides it.
    on_drop: Callable[[], None] | None
    # Writes frames at once if the client is ready for them. `next` returns the frames that were not written this way.
    on_push: Callable[[bytes], bool] | None

    async def next(self, within_s: float) -> bytes | None:
        """Return the next output; None after `within_s` seconds of silence; `b""` when the stream is over."""
        ...

    def drop(self, reason: str) -> None:
        """Give up the client."""
        ...

    def close(self) -> None:
        """Close the stream: the client is gone, or has received everything."""
        ...


class EventStream(Response):
    """The response. It ends when the frames end, or when the client disconnects."""

    def __init__(self, frames: Frames, *, heartbeat_s: float = HEARTBEAT_S, send_max_s: float = SEND_MAX_S) -> None:
        super().__init__(headers=HEADERS)
        # The length of a stream is unknown.
        del self.headers["content-length"]
        self._frames = frames
        self._heartbeat_s = heartbeat_s
        self._send_max_s = send_max_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send frames until the stream or the client's connection ends."""
        pump = asyncio.create_task(self._pump(send), name="windlass-stream")
        gone = asyncio.create_task(_gone(receive), name="windlass-stream-gone")
        abort: Callable[[], None] | None = scope.get("extensions", {}).get(ABORT)

        def cut_off() -> None:
            # The pump hangs in a send that would never end.
            pump.cancel()
            if abort is not None:
                abort()

        self._frames.on_drop = cut_off
        self._frames.on_push = scope.get("extensions", {}).get(PUSH)
        try:
            await asyncio.wait((pump, gone), return_when=asyncio.FIRST_COMPLETED)
            if pump.cancelled() and abort is not None:
                # The server must notice the lost connection before this response ends.
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
        # Sends the head: it waits for a piece of the body (`api/exchange.py`), and the first frame may come much later.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
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
