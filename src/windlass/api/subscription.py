"""One open stream: what it is to be sent, and where it stands. `api/hub.py` says how the parts work together."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

import msgspec

from windlass.api.follow import FeedReader, JobReader, Told
from windlass.api.sse import frame
from windlass.core.errors import NotFound, Unavailable
from windlass.store.outage import is_transient

# After this long the database is asked again.
AGAIN_S = 1.0
# What is handed to the server at once: what it cannot send yet stays here, where it is counted.
BODY_MAX_BYTES = 64 * 1024

_log = logging.getLogger("windlass.streams")
Reader = FeedReader | JobReader


class Joins(Protocol):
    """The hub, as a stream sees it."""

    def spawn(self, reading: Coroutine[Any, Any, None]) -> None:
        """Let it read on by itself."""
        ...

    async def read(self, reader: Reader) -> Sequence[Told]:
        """What comes next, when it is its turn."""
        ...

    async def try_join(self, subscription: Subscription) -> bool:
        """Take it over, if it stands where the hub stands."""
        ...

    def note_drop(self, reason: str) -> None:
        """A client was given up."""
        ...

    def leave(self, stream: Any) -> None:
        """A stream is over."""
        ...


class Open(Protocol):
    """A stream that is open: a subscription, or a console's of several topics."""

    caller: str
    until_s: float

    @property
    def kind(self) -> str:
        """What it is counted as."""
        ...

    def finish(self, event: str | None = None, why: str = "") -> None:
        """Send what waits, a last word, and end."""
        ...

    def drop(self, reason: str) -> None:
        """Give the client up."""
        ...


class Subscription:
    """One open stream: what it is to be sent, and where it stands."""

    def __init__(
        self, hub: Joins, caller: str, reader: Reader, opening: Sequence[bytes | Told], until_s: float
    ) -> None:
        self._hub = hub
        self._frames: deque[bytes | Told] = deque(opening)
        self._news = asyncio.Event()
        self._is_reading = False
        self.caller = caller
        self.reader = reader
        self.until_s = until_s
        # When its client last came for more, by the clock of the loop.
        self.taken_s = asyncio.get_running_loop().time()
        self.is_joined = False
        self.is_over = False
        self.is_dropped = False
        self.on_drop: Callable[[], None] | None = None

    @property
    def kind(self) -> str:
        """What is counted as: a stream of jobs, or of one."""
        return self.reader.kind

    @property
    def waiting(self) -> int:
        """How many frames its client has not taken yet."""
        return len(self._frames)

    async def next(self, within_s: float) -> bytes | None:
        """What is to be sent now; None after so much silence; `b""` when the stream is over."""
        try:
            async with asyncio.timeout(within_s):
                while not self._frames and not self.is_over:
                    self._news.clear()
                    self.go_on()
                    await self._news.wait()
        except TimeoutError:
            return None
        self.taken_s = asyncio.get_running_loop().time()
        taken: list[bytes] = []
        size = 0
        while self._frames and size < BODY_MAX_BYTES:
            one = self._frames.popleft()
            taken.append(one if isinstance(one, bytes) else one.frame)
            size += len(taken[-1])
        return b"".join(taken)

    def go_on(self) -> None:
        """See that more will come: by reading on, unless that is under way or the hub gives it."""
        if not self.is_joined and not self._is_reading and not self._frames and not self.is_over:
            self._is_reading = True
            self._hub.spawn(self._read_on())

    def give(self, frames: Sequence[bytes | Told]) -> None:
        """Add what is to be sent."""
        if frames and not self.is_over:
            self._frames.extend(frames)
            self._news.set()

    def finish(self, event: str | None = None, why: str = "") -> None:
        """Send what waits, a last word, and end."""
        if not self.is_over:
            if event is not None:
                self._frames.append(frame(event, None, msgspec.json.encode({"reason": why})))
            self.is_over = True
            self._news.set()

    def drop(self, reason: str) -> None:
        """Give the client up: what waits is lost to it, until it comes back."""
        if not self.is_dropped:
            self.is_dropped = self.is_over = True
            self._frames.clear()
            self._news.set()
            self._hub.note_drop(reason)
            if self.on_drop is not None:
                self.on_drop()

    def close(self) -> None:
        """Leave the hub. Its slot is free."""
        self.is_over = True
        self._hub.leave(self)

    async def _read_on(self) -> None:
        """Read until there is something to send, or nothing is left and the hub takes over."""
        try:
            while not self._frames and not self.is_over and not await self._hub.try_join(self):
                await self._read_once()
        finally:
            self._is_reading = False
            self._news.set()

    async def _read_once(self) -> None:
        try:
            self.give(await self._hub.read(self.reader))
            if isinstance(self.reader, JobReader) and self.reader.is_ending and not self._frames:
                last = await self.reader.end()
                if last is not None:
                    self._end(last)
        except NotFound:
            self._lose()
        except Exception as error:
            if not isinstance(error, Unavailable) and not is_transient(error):
                _log.exception("a stream of %s cannot go on", self.caller)
                self.finish("bye", "a fault of ours")
            await asyncio.sleep(AGAIN_S)

    def _end(self, last: bytes) -> None:
        """The job has ended, and everything was told."""
        self.give([last])
        self.finish()

    def _lose(self) -> None:
        """The job is there no more."""
        self.finish("bye", "the job was removed")
