"""One hub per process: reads new events once, and gives them to every stream that follows them.

    subscription   reads the history at its client's pace, until it reaches the hub's place …
    hub            … and from then on gives it the new events, as frames that are encoded once for all streams

A subscription joins only between two looks, and only at or after the hub's place. The hub then gives it the events
after its own place. So joining causes neither a gap nor a repeat, regardless of the length of the history.

The hub looks when a bell rings and periodically: often while events arrive, rarely otherwise, never without streams.
It never waits for a client. It cuts off a client that leaves QUEUE_MAX frames and takes none for a second, or is very
far behind. That client comes back with its last id, and reads on at its own pace.

While the database is unavailable the hub tries again, and clients see heartbeats. If the database comes back with
another history (`api/history.py`), every stream ends, and a returning client must start anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol
from uuid import UUID

import msgspec

from windlass.api.console_stream import ConsoleStream, opened
from windlass.api.follow import FeedReader, FeedTold, JobEventReader, Told, feed_told
from windlass.api.history import History
from windlass.api.sse import frame
from windlass.api.subscription import AGAIN_S, Open, Reader, Subscription, last_frames, opening
from windlass.api.topics import Wanted
from windlass.api.wire.listing import ALL_CALLERS
from windlass.core.bell import Bell, JobsEnded, WorkQueued
from windlass.core.caller import CallerContext
from windlass.core.errors import BadRequest, TooManyStreams, Unavailable
from windlass.documents.tracebacks import expose_to_caller
from windlass.engine import feed
from windlass.pure.cursor import FeedAt, Place, parse_feed_id
from windlass.store.database import Database
from windlass.store.outage import is_transient
from windlass.store.plans import plan_of
from windlass.views import read

QUEUE_MAX = 256
STALLED_S = 1.0
# For a client that takes frames, but fewer than arrive.
BEHIND_MAX = 10_000
STREAM_MAX_S = 600.0
LOOK_S = 0.05
IDLE_LOOK_S = 0.25
# How many events of followed jobs one look reads, in all and of each job: few of many jobs, or many of few.
LOOK_MAX = 20_000
EACH_MIN, EACH_MAX = 200, 2_000
# After this long without news, looks become rare.
QUIET_S = 5.0
# The pause between two looks, as a multiple of the database's time for a look; at most PAUSE_MAX_S.
SHARE = 2
PAUSE_MAX_S = 0.1
# How many streams may read on without the hub at once; the others wait for a turn.
READERS_MAX = 4

_log = logging.getLogger("windlass.streams")


class Hears(Protocol):
    """Counts streams; `telemetry/meters.py` implements it."""

    def streams(self, kind: str, change: int) -> None:
        """Count an opened (1) or ended (-1) stream."""
        ...

    def dropped(self, reason: str) -> None:
        """Count a stream that was cut off."""
        ...


class _Track:
    """A followed job: how far the hub has read it, and its subscriptions."""

    def __init__(self, reader: JobEventReader) -> None:
        self.reader = reader
        self.subscriptions: set[Subscription] = set()


class Hub:
    """All streams of a process."""

    name = "streams"

    def __init__(
        self,
        db: Database,
        *,
        epoch: int,
        streams_max: int,
        per_caller_max: int,
        clock: Callable[[], float] = time.monotonic,
        meters: Hears | None = None,
        stream_max_s: float = STREAM_MAX_S,
    ) -> None:
        self._db = db
        self._history = History(db, epoch, clock)
        self._streams_max = streams_max
        self._per_caller_max = per_caller_max
        self._clock = clock
        self._meters = meters
        self._stream_max_s = stream_max_s
        # In the order of their opening, which is the order of their ends.
        self._all: dict[Open, None] = {}
        self._slots: dict[str, int] = {}
        self._feeds: dict[str | None, set[Subscription]] = {}
        self._jobs: dict[UUID, _Track] = {}
        self._at: FeedAt | None = None
        self._looked = asyncio.Event()
        self._looked.set()
        self._rung = asyncio.Event()
        self._readers = asyncio.Semaphore(READERS_MAX)
        self._news_s = 0.0
        # How long this look has waited for the database.
        self._asked_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False
        self.alive_s = clock()

    @property
    def count(self) -> int:
        """Return how many streams are open."""
        return sum(self._slots.values())

    def alive(self) -> float | None:
        """Return how many seconds ago the loop last ran."""
        return self._clock() - self.alive_s

    def ready(self) -> bool:
        """Return whether the loop is running."""
        return self._task is not None and not self._task.done()

    async def start(self) -> None:
        """Listen for bells, and start looking."""
        self._is_stopped = False
        await self._db.listen(WorkQueued, self._ring)
        await self._db.listen(JobsEnded, self._ring)
        self._task = asyncio.create_task(self._run(), name="windlass-hub")

    async def stop(self) -> None:
        """End all streams, so that clients reconnect here or to another process, and stop looking."""
        self._is_stopped = True
        for subscription in list(self._all):
            subscription.finish("bye", "the server stops")
        tasks = [*self._tasks, *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._task = None

    async def follow_caller(self, caller: str, after: str | None, *, of: str | None = None) -> Subscription:
        """Follow the jobs of the caller, of `of` or of ALL_CALLERS, after a place or from now on."""
        whose = caller if of is None else None if of == ALL_CALLERS else of
        place = None if not after else parse_feed_id(after)
        release = self._take_slot(caller)
        try:
            here = await feed.here(self._db)
            await self._is_same_history()
            is_foreign = place is not None and place[0] != self._history.epoch
            start = Place(here) if place is None or is_foreign else place[1]
            if start.slot > here:
                raise BadRequest("this id belongs to a future event", remedy="Send an id of the stream, or none")
            reader = FeedReader(self._db, self._history.epoch, whose, start)
        except BaseException:
            release()
            raise
        frames = [opening(reader)]
        if is_foreign:
            frames.append(frame("reset", reader.id, msgspec.json.encode({"after": reader.id})))
        return self._subscribed(caller, reader, frames)

    async def follow_job(self, job_id: UUID, caller: str, after: int) -> Subscription:
        """Follow one job after an event's number. The route has checked that the caller may see the job."""
        release = self._take_slot(caller)
        try:
            job = await read.job(self._db, job_id)
            if not 0 <= after <= job.event_seq:
                raise BadRequest(
                    f"job {job_id} has {job.event_seq} events so far, not {after}", remedy="Send an id of the stream"
                )
            reader = JobEventReader(self._db, job, await plan_of(self._db, job.plan), after)
        except BaseException:
            release()
            raise
        return self._subscribed(caller, reader, [opening(reader)])

    async def follow_topics(self, caller: CallerContext, topics: Sequence[Wanted]) -> ConsoleStream:
        """Follow several topics in one stream, as a console does."""
        release = self._take_slot(caller.caller_id)
        try:
            await self._is_same_history()
            made = await opened(self, self._db, self._history.epoch, caller, topics, self._clock() + self._stream_max_s)
        except BaseException:
            release()
            raise
        self._enter(made)
        return made

    def forget(self, caller: str) -> None:
        """End the streams of a caller after a key was revoked. A client that comes back must authenticate again."""
        for subscription in [s for s in self._all if s.caller == caller]:
            subscription.finish("bye", "a key was revoked")

    def note_drop(self, reason: str) -> None:
        """Count a client that was given up."""
        if self._meters is not None:
            self._meters.dropped(reason)

    def leave(self, stream: Open) -> None:
        """Remove an ended stream. A second call changes nothing."""
        if stream not in self._all:
            return
        del self._all[stream]
        if isinstance(stream, Subscription):
            self.unjoin(stream)
        self._release_slot(stream.caller)
        if self._meters is not None:
            self._meters.streams(stream.kind, -1)

    def spawn(self, reading: Coroutine[Any, Any, None]) -> None:
        """Run a read in its own task, so that a client that disconnects does not interrupt a database read."""
        task = asyncio.create_task(reading, name="windlass-stream-reads")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def read(self, reader: Reader) -> Sequence[Told]:
        """Read on for one stream; limits the number of concurrent reads."""
        async with self._readers:
            return await reader.read()

    def turn(self) -> asyncio.Semaphore:
        """Return the semaphore for reads that happen outside the hub's own loop."""
        return self._readers

    async def try_join(self, subscription: Subscription) -> bool:
        """Take over a stream that has reached the hub's place. The decision falls between two looks."""
        while not self._looked.is_set():
            await self._looked.wait()
        if subscription.is_over:
            return True
        reader = subscription.reader
        if isinstance(reader, JobEventReader):
            subscription.is_joined = self._join_job(subscription, reader)
        else:
            subscription.is_joined = self._join_feed(subscription, reader)
        return subscription.is_joined

    def _join_feed(self, subscription: Subscription, reader: FeedReader) -> bool:
        if reader.place.through is not None:
            return False
        if not self._feeds or self._at is None:
            self._at = reader.place.at
        if reader.place.at < self._at:
            return False
        self._feeds.setdefault(reader.caller, set()).add(subscription)
        return True

    def _join_job(self, subscription: Subscription, reader: JobEventReader) -> bool:
        if reader.is_ending:
            return False
        track = self._jobs.get(reader.job.id)
        if track is None:
            track = self._jobs[reader.job.id] = _Track(reader.twin())
        if reader.seq < track.reader.seq:
            return False
        track.subscriptions.add(subscription)
        return True

    def unjoin(self, subscription: Subscription) -> None:
        """Stop giving frames to the subscription."""
        subscription.is_joined = False
        match subscription.reader:
            case JobEventReader() as reader:
                track = self._jobs.get(reader.job.id)
                if track is not None:
                    track.subscriptions.discard(subscription)
                    if not track.subscriptions:
                        del self._jobs[reader.job.id]
            case FeedReader() as reader:
                group = self._feeds.get(reader.caller, set())
                group.discard(subscription)
                if not group:
                    self._feeds.pop(reader.caller, None)

    def _subscribed(self, caller: str, reader: Reader, opening: Sequence[bytes]) -> Subscription:
        made = Subscription(self, caller, reader, opening, self._clock() + self._stream_max_s)
        self._enter(made)
        return made

    def _enter(self, stream: Open) -> None:
        self._all[stream] = None
        if self._meters is not None:
            self._meters.streams(stream.kind, 1)
        if self._is_stopped:
            stream.finish("bye", "the server stops")

    def _take_slot(self, caller: str) -> Callable[[], None]:
        # Frames are encoded once for all followers, so the visibility of the first follower's request must not apply.
        expose_to_caller(False)
        own = self._slots.get(caller, 0)
        if own >= self._per_caller_max or self.count >= self._streams_max:
            most, whose = (
                (self._per_caller_max, "you have") if own >= self._per_caller_max else (self._streams_max, "there are")
            )
            raise TooManyStreams(
                f"{whose} {most} open streams, which is the limit",
                retry_after_s=5.0,
                remedy="Close a stream; one stream of all jobs replaces many streams of single jobs",
            )
        self._slots[caller] = own + 1
        return lambda: self._release_slot(caller)

    def _release_slot(self, caller: str) -> None:
        self._slots[caller] -= 1
        if not self._slots[caller]:
            del self._slots[caller]

    def _ring(self, _bell: Bell) -> None:
        self._rung.set()

    async def _run(self) -> None:
        while True:
            self._rung.clear()
            self._end_old()
            self._asked_s = 0.0
            try:
                await self._look()
                pause_s = min(PAUSE_MAX_S, SHARE * self._asked_s)
            except Exception as error:
                if not isinstance(error, Unavailable) and not is_transient(error):
                    _log.exception("looking for events failed")
                pause_s = AGAIN_S
            self.alive_s = self._clock()
            await asyncio.sleep(pause_s)
            is_busy = self._clock() - self._news_s < QUIET_S
            await self._until_rung(max(0.0, (LOOK_S if is_busy else IDLE_LOOK_S) - pause_s))

    async def _until_rung(self, within_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._rung.wait()

    def _end_old(self) -> None:
        """End streams that reached their maximum age: a client that comes back must authenticate again."""
        now_s = self._clock()
        for subscription in list(self._all):
            if subscription.until_s > now_s:
                break
            subscription.finish("bye", "come back")
            if now_s > subscription.until_s + self._stream_max_s:
                # The response never started, or hangs.
                subscription.drop("stuck")
                self.leave(subscription)

    async def _look(self) -> None:
        if not self._feeds and not self._jobs:
            return
        if not await self._is_same_history():
            return
        self._looked.clear()
        try:
            if self._feeds:
                await self._look_at_feed()
            if self._jobs:
                await self._look_at_jobs()
        finally:
            self._looked.set()

    async def _is_same_history(self) -> bool:
        """Return whether positions are still valid. If they are not, end every stream."""
        if await self._history.is_same():
            return True
        for stream in list(self._all):
            stream.finish("bye", "the history of the database has changed; connect again from the start")
            if isinstance(stream, Subscription):
                self.unjoin(stream)
        return False

    async def _look_at_feed(self) -> None:
        callers = None if None in self._feeds else sorted(name for name in self._feeds if name is not None)
        start = self._at
        assert start is not None
        began_s = self._clock()
        rows, end = await feed.after(self._db, start, callers=callers)
        self._asked_s += self._clock() - began_s
        # The connection may have been lost just now, and the rows may be those of a promoted standby.
        if not await self._is_same_history():
            return
        self._at = end
        if not rows:
            return
        self._news_s = self._clock()
        told = feed_told(self._history.epoch, rows, start)
        by_caller: dict[str | None, list[FeedTold]] = {None: told}
        for one in told:
            by_caller.setdefault(one.row.caller, []).append(one)
        for caller, group in self._feeds.items():
            own = by_caller.get(caller, [])
            for subscription in list(group):
                # A subscription that was beyond the hub's place when it joined already has some of these events.
                assert isinstance(subscription.reader, FeedReader)
                joined_at = subscription.reader.place.at
                fresh = own if joined_at <= start else [one for one in own if one.place.slot > joined_at]
                self._give(subscription, fresh)

    async def _look_at_jobs(self) -> None:
        wanted = {job_id: track.reader.seq for job_id, track in self._jobs.items()}
        began_s = self._clock()
        found = await read.events_of(self._db, wanted, min(EACH_MAX, max(EACH_MIN, LOOK_MAX // len(wanted))))
        self._asked_s += self._clock() - began_s
        ended: list[Subscription] = []
        for job_id, events in found.items():
            track = self._jobs.get(job_id)
            if track is None:
                continue
            self._news_s = self._clock()
            before = track.reader.seq
            told = await track.reader.told(events)
            for subscription in list(track.subscriptions):
                reader = subscription.reader
                assert isinstance(reader, JobEventReader)
                # A job's numbers have no gap, so their difference counts the events that the subscription has.
                self._give(subscription, told[max(0, reader.seq - before) :])
                reader.catch_up(track.reader)
                if reader.is_ending:
                    ended.append(subscription)
        for subscription, last in await last_frames(self._db, ended):
            self.unjoin(subscription)
            if last is not None:
                subscription.end(last)
            else:
                # The subscription reads the remaining events and the job's end without the hub.
                subscription.go_on()

    def _give(self, subscription: Subscription, told: Sequence[Told]) -> None:
        stalled_s = asyncio.get_running_loop().time() - subscription.taken_s
        is_stalled = subscription.waiting >= QUEUE_MAX and stalled_s >= STALLED_S
        if told and (is_stalled or subscription.waiting >= BEHIND_MAX):
            subscription.drop("slow")
        else:
            subscription.give(told)
