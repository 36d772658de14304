"""One open stream: its waiting frames and its place. `api/hub.py` describes how the parts work together."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol
from uuid import UUID

import msgspec

from windlass.api.follow import FeedReader, JobEventReader, Told
from windlass.api.sse import frame
from windlass.core.errors import NotFound, Unavailable
from windlass.store.database import Database
from windlass.store.outage import is_transient
from windlass.views.read import JobView, jobs_of

# After this long the database is tried again.
AGAIN_S = 1.0
# How much is handed to the server at once. The rest stays here, where it is counted.
BODY_MAX_BYTES = 64 * 1024
# How many ended jobs are read at once.
ENDS_MAX = 200
RETRY_MS = 2_000

_log = logging.getLogger("windlass.streams")
Reader = FeedReader | JobEventReader


class Joins(Protocol):
    """The hub, as a stream sees it."""

    def spawn(self, reading: Coroutine[Any, Any, None]) -> None:
        """Run a read in its own task."""
        ...

    async def read(self, reader: Reader) -> Sequence[Told]:
        """Return the next events, after waiting for a turn to read."""
        ...

    async def try_join(self, subscription: Subscription) -> bool:
        """Take over the subscription if it has reached the hub's place."""
        ...

    def note_drop(self, reason: str) -> None:
        """Count a client that was given up."""
        ...

    def leave(self, stream: Any) -> None:
        """Remove an ended stream."""
        ...


class Open(Protocol):
    """An open stream: a subscription, or a console's stream of several topics."""

    caller: str
    until_s: float

    @property
    def kind(self) -> str:
        """Return the kind of stream, for the metrics."""
        ...

    def finish(self, event: str | None = None, why: str = "") -> None:
        """Send the waiting output and a last frame, and end."""
        ...

    def drop(self, reason: str) -> None:
        """Give up the client."""
        ...


class Subscription:
    """One open stream: its waiting frames and its place."""

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
        # When the client last took output, by the loop's clock.
        self.taken_s = asyncio.get_running_loop().time()
        self.is_joined = False
        self.is_over = False
        self.is_dropped = False
        self.on_drop: Callable[[], None] | None = None
        self.on_push: Callable[[bytes], bool] | None = None
        # Whether the response waits for frames, so that nothing is being sent.
        self._is_waiting = False

    @property
    def kind(self) -> str:
        """Return the kind of stream, for the metrics: of jobs, or of one job."""
        return self.reader.kind

    @property
    def waiting(self) -> int:
        """Return how many frames the client has not taken yet."""
        return len(self._frames)

    async def next(self, within_s: float) -> bytes | None:
        """Return the next output; None after `within_s` seconds of silence; `b""` when the stream is over."""
        left_s = within_s
        while not await self._has_news(left_s):
            # Frames that were pushed in the meantime count as output.
            left_s = self.taken_s + within_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                return None
        self.taken_s = asyncio.get_running_loop().time()
        taken: list[bytes] = []
        size = 0
        while self._frames and size < BODY_MAX_BYTES:
            one = self._frames.popleft()
            taken.append(one if isinstance(one, bytes) else one.frame)
            size += len(taken[-1])
        return b"".join(taken)

    async def _has_news(self, within_s: float) -> bool:
        """Wait until there is output or the stream is over; return False after `within_s` seconds."""
        try:
            async with asyncio.timeout(within_s):
                while not self._frames and not self.is_over:
                    self._news.clear()
                    self.go_on()
                    self._is_waiting = True
                    await self._news.wait()
        except TimeoutError:
            return False
        finally:
            self._is_waiting = False
        return True

    def go_on(self) -> None:
        """Start reading on, unless a read is under way or the hub gives the frames."""
        if not self.is_joined and not self._is_reading and not self._frames and not self.is_over:
            self._is_reading = True
            self._hub.spawn(self._read_on())

    def give(self, frames: Sequence[bytes | Told]) -> None:
        """Add frames to send."""
        if frames and not self.is_over and not self._push(frames):
            self._frames.extend(frames)
            self._news.set()

    def _push(self, frames: Sequence[bytes | Told]) -> bool:
        """Write frames at once if no other frames wait and the client is ready."""
        if self.on_push is None or not self._is_waiting or self._frames:
            return False
        body = b"".join([one if isinstance(one, bytes) else one.frame for one in frames])
        if len(body) > BODY_MAX_BYTES or not self.on_push(body):
            return False
        self.taken_s = asyncio.get_running_loop().time()
        return True

    def finish(self, event: str | None = None, why: str = "") -> None:
        """Send the waiting output and a last frame, and end."""
        if not self.is_over:
            if event is not None:
                self._frames.append(frame(event, None, msgspec.json.encode({"reason": why})))
            self.is_over = True
            self._news.set()

    def drop(self, reason: str) -> None:
        """Give up the client: it loses the waiting output until it comes back."""
        if not self.is_dropped:
            self.is_dropped = self.is_over = True
            self._frames.clear()
            self._news.set()
            self._hub.note_drop(reason)
            if self.on_drop is not None:
                self.on_drop()

    def close(self) -> None:
        """Leave the hub and free the slot."""
        self.is_over = True
        self._hub.leave(self)

    async def _read_on(self) -> None:
        """Read until there is something to send, or until nothing is left and the hub takes over."""
        try:
            while not self._frames and not self.is_over and not await self._hub.try_join(self):
                await self._read_once()
        finally:
            self._is_reading = False
            self._news.set()

    async def _read_once(self) -> None:
        try:
            self.give(await self._hub.read(self.reader))
            if isinstance(self.reader, JobEventReader) and self.reader.is_ending and not self._frames:
                last = await self.reader.end()
                if last is not None:
                    self.end(last)
        except NotFound:
            self._lose()
        except Exception as error:
            if not isinstance(error, Unavailable) and not is_transient(error):
                _log.exception("a stream of %s cannot go on", self.caller)
                self.finish("bye", "an internal error")
            await asyncio.sleep(AGAIN_S)

    def end(self, last: bytes) -> None:
        """End the stream: the job has ended, and every event was given."""
        self.give([last])
        self.finish()

    def _lose(self) -> None:
        """End the stream: the job no longer exists."""
        self.finish("bye", "the job was removed")


def opening(reader: Reader) -> bytes:
    """Return the `open` frame.

    It names the place, so that a client that is cut off at once comes back without a gap.
    """
    data = msgspec.json.encode({"after": reader.id})
    return frame("open", reader.id, data, RETRY_MS + random.randrange(1_000))


async def last_frames(db: Database, ended: Sequence[Subscription]) -> list[tuple[Subscription, bytes | None]]:
    """Return the last frame of each stream whose job has ended, or None if its client must take other frames first.

    The jobs are read together: a thousand jobs that end at once would otherwise need two thousand reads.
    """
    jobs: dict[UUID, JobView] = {}
    ids = sorted({one.reader.job.id for one in ended if isinstance(one.reader, JobEventReader) and not one.waiting})
    for start in range(0, len(ids), ENDS_MAX):
        jobs |= await jobs_of(db, ids[start : start + ENDS_MAX])
    found: list[tuple[Subscription, bytes | None]] = []
    for one in ended:
        assert isinstance(one.reader, JobEventReader)
        job = jobs.get(one.reader.job.id)
        is_next = one.is_joined and not one.waiting
        found.append((one, one.reader.end_of(job) if job is not None and is_next else None))
    return found
