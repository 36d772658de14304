"""One stream for a whole console: combines several topics of the hub into patches.

    hub ─► topic ─┐
    hub ─► topic ─┼─► gather (what was touched) ─► at most 10 times a second: read it ─► one patch with one cursor
    hub ─► topic ─┘

A patch contains events and the documents of the touched jobs and steps, which are read when the patch is made. So a
burst of events of one step yields one document, and a document is never older than its events. The first patch after a
silence is sent at once. While a patch waits for its client, the stream gathers at most LINES_MAX events. Then the
topics fill up, and the hub cuts the client off like any other slow client. The client comes back with its last cursor.

A topic that ends or does not exist is `gone`, and the other topics go on. A topic that is too far behind to send every
event is `reset`: its client reads the snapshot again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from uuid import UUID

import msgspec

from windlass.api.console_patch import News, patch_data, read_jobs, read_truth
from windlass.api.follow import FeedReader, FeedTold, JobEventReader, JobTold
from windlass.api.sse import frame
from windlass.api.subscription import AGAIN_S, Joins, Subscription
from windlass.api.topics import Wanted, cursor_text
from windlass.core.caller import CallerContext
from windlass.core.errors import Unavailable
from windlass.engine import feed
from windlass.pure.cursor import Place, feed_id
from windlass.store.database import Database
from windlass.store.outage import is_transient
from windlass.store.plans import plan_of
from windlass.views.read import JobView

EVERY_S = 0.1
# Counting the children of a fan-out reads all of them.
FANS_EVERY_S = 1.0
# How many events one patch contains.
LINES_MAX = 1_000
# A client further behind than this reads the snapshot again, which is quicker than sending every event.
BEHIND_MAX = 10_000
HEARTBEAT_S = 15.0
RETRY_MS = 1_000

_log = logging.getLogger("windlass.streams")


class Follows(Joins, Protocol):
    """The hub, as a console's stream sees it."""

    def turn(self) -> AbstractAsyncContextManager[Any]:
        """Wait for a turn to read; limits the number of concurrent reads."""
        ...

    def unjoin(self, subscription: Subscription) -> None:
        """Stop giving frames to the subscription."""
        ...


class Topic(Subscription):
    """One topic of the stream: the events that the hub found for it, until the stream gathers them."""

    def __init__(self, hub: Follows, stream: ConsoleStream, name: str, reader: FeedReader | JobEventReader) -> None:
        self._stream = stream
        super().__init__(hub, stream.caller, reader, (), math.inf)
        self._follows = hub
        self._news = stream.stirred
        self.name = name
        # The client's position once it has received everything that was gathered.
        self.place = reader.id
        self.gone: str | None = None
        # How many events the topic has read without the hub since it was opened.
        self.read_alone = 0

    @property
    def taken_s(self) -> float:
        """Return when the client last took output: now, unless output waits for the client."""
        return self._stream.taken_s

    @taken_s.setter
    def taken_s(self, now_s: float) -> None:
        """Ignore the value: only the stream knows it."""

    def take(self, most: int) -> list[Any]:
        """Return up to `most` events that were found and not gathered yet."""
        found = [self._frames.popleft() for _ in range(min(most, len(self._frames)))]
        if not self.is_joined:
            self.read_alone += len(found)
        return found

    def finish(self, event: str | None = None, why: str = "") -> None:
        """End the whole stream, because this topic cannot go on."""
        self._stream.finish(event, why)

    def drop(self, reason: str) -> None:
        """Drop the whole stream, because its client takes nothing."""
        self._stream.drop(reason)

    def stop(self) -> None:
        """Stop following."""
        self.is_over = True
        self._follows.unjoin(self)

    def end(self, last: bytes) -> None:
        """Mark the topic as ended: the job has ended, and every event was given."""
        self._go("ended")

    def _lose(self) -> None:
        self._go("not_found")

    def _go(self, code: str) -> None:
        self.gone, self.is_over = code, True
        self._news.set()


class ConsoleStream:
    """The stream: frames for one client, made by one task from the events of the topics."""

    kind = "console"

    def __init__(self, hub: Follows, db: Database, epoch: int, caller: CallerContext, until_s: float) -> None:
        self._hub = hub
        self._db = db
        self._epoch = epoch
        self._owner = caller.owner
        self.caller = caller.caller_id
        self.until_s = until_s
        self.is_over = False
        self.on_drop: Callable[[], None] | None = None
        self.on_push: Callable[[bytes], bool] | None = None
        # Set when a topic has news, or when the client has taken output.
        self.stirred = asyncio.Event()
        self._ready = asyncio.Event()
        self._out: deque[bytes] = deque()
        self._is_running = False
        self._topics: deque[Topic] = deque()
        # The places in the cursor, in the order of the requested topics. Topics that are gone stay in it: a client that
        # comes back gets `gone` for them again.
        self._places: dict[str, str | None] = {}
        # Gathered, and not sent yet.
        self._jobs: set[UUID] = set()
        self._news: dict[UUID, News] = {}
        self._lines = 0
        self._leaving: list[Topic] = []
        self._uncounted: dict[UUID, Topic] = {}
        self._counted_s: dict[UUID, float] = {}
        self._told_s = self._offered_s = -math.inf

    @property
    def taken_s(self) -> float:
        """Return since when output waits for the client; now, if no output waits."""
        return self._offered_s if self._out else asyncio.get_running_loop().time()

    @property
    def cursor(self) -> str:
        """Return the client's position once it has received everything that was sent."""
        return cursor_text(list(self._places.items()))

    # Called by the response.

    async def next(self, within_s: float) -> bytes | None:
        """Return the next output; None after `within_s` seconds of silence; `b""` when the stream is over."""
        if not self._is_running:
            self._is_running = True
            self._offered_s = asyncio.get_running_loop().time()
            self._hub.spawn(self._run())
        try:
            async with asyncio.timeout(within_s):
                while not self._out and not self.is_over:
                    self._ready.clear()
                    await self._ready.wait()
        except TimeoutError:
            return None
        body = b"".join(self._out)
        self._out.clear()
        self.stirred.set()
        return body

    def finish(self, event: str | None = None, why: str = "") -> None:
        """Send the waiting output and a last frame, and end."""
        if not self.is_over:
            if event is not None:
                self._out.append(frame(event, None, msgspec.json.encode({"reason": why})))
            self.is_over = True
            self._ready.set()
            self.stirred.set()

    def drop(self, reason: str) -> None:
        """Give up the client: it loses the waiting output until it comes back."""
        if not self.is_over or self._out:
            self.is_over = True
            self._out.clear()
            self._hub.note_drop(reason)
            self._ready.set()
            self.stirred.set()
            if self.on_drop is not None:
                self.on_drop()

    def close(self) -> None:
        """Leave the hub and free the slot."""
        self.is_over = True
        self.stirred.set()
        for topic in self._topics:
            topic.stop()
        self._hub.leave(self)

    # Opening.

    async def open(self, topics: Sequence[Wanted]) -> None:
        """Start with these topics, each after its place, or from now on if it has none."""
        self._places = {one.name: _given(one) for one in topics}
        # If one place belongs to another database, all places do.
        is_foreign = any(one.feed is not None and one.feed[0] != self._epoch for one in topics)
        jobs = await read_jobs(self._db, [one.job_id for one in topics if one.job_id is not None])
        resets: list[Topic] = []
        gone: list[str] = []
        for wanted in topics:
            if wanted.job_id is None:
                topic, is_reset = await self._feed_topic(wanted)
            elif self._is_theirs(job := jobs.get(wanted.job_id)):
                assert job is not None
                topic, is_reset = await self._job_topic(wanted, job, is_foreign=is_foreign)
            else:
                gone.append(wanted.name)
                continue
            self._topics.append(topic)
            if is_reset:
                # The old place stays in the cursor until the client has received the reset.
                resets.append(topic)
            else:
                self._places[topic.name] = topic.place
        opening = {"cursor": self.cursor}
        retry_ms = RETRY_MS + random.randrange(RETRY_MS)
        self._out.append(frame("open", self.cursor, msgspec.json.encode(opening), retry_ms))
        self._out.extend(self._reset(topic) for topic in resets)
        self._out.extend(self._gone(name, "not_found") for name in gone)

    async def _feed_topic(self, wanted: Wanted) -> tuple[Topic, bool]:
        here = await feed.here(self._db)
        is_good = wanted.feed is not None and wanted.feed[0] == self._epoch and wanted.feed[1].slot <= here
        start = wanted.feed[1] if wanted.feed is not None and is_good else Place(here)
        reader = FeedReader(self._db, self._epoch, self._owner, start)
        return Topic(self._hub, self, wanted.name, reader), wanted.feed is not None and not is_good

    async def _job_topic(self, wanted: Wanted, job: JobView, *, is_foreign: bool) -> tuple[Topic, bool]:
        behind = 0 if wanted.seq is None else job.event_seq - wanted.seq
        is_reset = wanted.seq is not None and (is_foreign or not 0 <= behind <= BEHIND_MAX)
        start = job.event_seq if wanted.seq is None or is_reset else wanted.seq
        reader = JobEventReader(self._db, job, await plan_of(self._db, job.plan), start)
        return Topic(self._hub, self, wanted.name, reader), is_reset

    def _is_theirs(self, job: JobView | None) -> bool:
        return job is not None and job.deleted_at is None and self._owner in (None, job.caller)

    def _reset(self, topic: Topic) -> bytes:
        self._places[topic.name] = topic.place
        return frame("reset", self.cursor, msgspec.json.encode({"topic": topic.name, "cursor": self.cursor}))

    def _gone(self, name: str, code: str) -> bytes:
        return frame("gone", self.cursor, msgspec.json.encode({"topic": name, "code": code}))

    # Sending.

    async def _run(self) -> None:
        while not self.is_over:
            self.stirred.clear()
            self._gather()
            wait_s = self._wait_s()
            if self._out or wait_s is None or wait_s > 0:
                await self._until_stirred(None if self._out else wait_s)
                continue
            try:
                async with self._hub.turn():
                    await self._tell()
            except Exception as error:
                # The gathered events are kept, and are sent when the database is back.
                if not isinstance(error, Unavailable) and not is_transient(error):
                    _log.exception("a console's stream of %s cannot go on", self.caller)
                    self.finish("bye", "an internal error")
                await asyncio.sleep(AGAIN_S)

    async def _until_stirred(self, within_s: float | None) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self.stirred.wait()
        except TimeoutError:
            return

    def _gather(self) -> None:
        """Take the events that the topics have found, and make the topics read on."""
        # So that no topic is always last.
        self._topics.rotate(1)
        for topic in self._topics:
            for told in topic.take(LINES_MAX - self._lines):
                self._lines += 1
                if isinstance(told, FeedTold):
                    self._jobs.add(told.row.at.job_id)
                    topic.place = told.id
                elif isinstance(told, JobTold):
                    self._add(topic, told)
            if self._lines < LINES_MAX:
                topic.go_on()
            if topic.gone is not None and topic not in self._leaving:
                self._leaving.append(topic)

    def _add(self, topic: Topic, told: JobTold) -> None:
        reader = topic.reader
        assert isinstance(reader, JobEventReader)
        news = self._news.get(reader.job.id)
        if news is None:
            news = self._news[reader.job.id] = News(reader.plan)
        news.add(told)
        topic.place = str(told.event.seq)
        if news.is_fanned:
            self._uncounted[reader.job.id] = topic

    def _wait_s(self) -> float | None:
        """Return the seconds until there is something to send; None when there is nothing."""
        now_s = asyncio.get_running_loop().time()
        soonest_s = max(0.0, self._told_s + EVERY_S - now_s)
        if self._lines or self._leaving:
            return soonest_s
        if self._uncounted:
            return max(soonest_s, min(self._count_at_s(job_id) for job_id in self._uncounted) - now_s)
        return None

    def _count_at_s(self, job_id: UUID) -> float:
        return self._counted_s.get(job_id, -math.inf) + FANS_EVERY_S

    async def _tell(self) -> None:
        """Read everything that was touched, and send it."""
        now_s = asyncio.get_running_loop().time()
        behind = [topic for topic in self._topics if topic.read_alone > BEHIND_MAX and _is_feed(topic)]
        if behind:
            self._jobs.clear()
        leaving = {id(topic) for topic in self._leaving}
        counted = {
            job_id: topic
            for job_id, topic in self._uncounted.items()
            if id(topic) in leaving or self._count_at_s(job_id) <= now_s
        }
        plans = {
            job_id: topic.reader.plan for job_id, topic in counted.items() if isinstance(topic.reader, JobEventReader)
        }
        truth = await read_truth(self._db, self._jobs, self._news, plans)
        fresh = [await self._begin_again(topic) for topic in behind]
        if self.is_over:
            return
        # No await from here on, so the gathered events are sent completely or not at all.
        for topic in self._topics:
            if topic not in behind:
                self._places[topic.name] = topic.place
        if self._jobs or self._news or counted:
            seqs = {job_id: one.seq for job_id, one in self._news.items()}
            seqs |= {job_id: int(topic.place) for job_id, topic in counted.items()}
            data = patch_data(self._jobs, self._news, seqs, truth)
            self._out.append(frame("patch", self.cursor, data))
        for old, new in zip(behind, fresh, strict=True):
            self._topics[self._topics.index(old)] = new
            self._out.append(self._reset(new))
        for topic in self._leaving:
            self._topics.remove(topic)
            self._out.append(self._gone(topic.name, topic.gone or ""))
        for job_id in counted:
            del self._uncounted[job_id]
            self._counted_s[job_id] = now_s
        self._jobs, self._news, self._lines, self._leaving = set(), {}, 0, []
        self._told_s = self._offered_s = asyncio.get_running_loop().time()
        self._ready.set()

    async def _begin_again(self, topic: Topic) -> Topic:
        """Return a new topic of the same name that starts now."""
        topic.stop()
        fresh, _ = await self._feed_topic(Wanted(None))
        return fresh


async def opened(
    hub: Follows, db: Database, epoch: int, caller: CallerContext, topics: Sequence[Wanted], until_s: float
) -> ConsoleStream:
    """Return a stream of these topics for this caller."""
    made = ConsoleStream(hub, db, epoch, caller, until_s)
    await made.open(topics)
    return made


def _is_feed(topic: Topic) -> bool:
    return isinstance(topic.reader, FeedReader)


def _given(wanted: Wanted) -> str | None:
    """Return the place of a topic as its client gave it."""
    if wanted.feed is not None:
        return feed_id(*wanted.feed)
    return None if wanted.seq is None else str(wanted.seq)
