"""One stream for a whole console: several topics of the hub, told together as patches.

    hub ─► topic ─┐
    hub ─► topic ─┼─► gather (what was touched) ─► at most 10 times a second: read it ─► one patch with one cursor
    hub ─► topic ─┘

A patch names what happened and brings the documents of what was touched, read when it is made: so a burst of events of
one step is one document, and a document is never older than its events. The first patch after a silence goes out at
once. While a patch waits for its client no more than LINES_MAX events are gathered; then the topics fill up, and the
hub cuts the client off as it does any other. It comes back with the cursor of the last patch that it has.

A topic that ends, or was never there, is `gone` and the others go on. One that is too far behind to be told event by
event is `reset`: its client reads the whole again.
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
from windlass.api.follow import FeedReader, FeedTold, JobReader, JobTold
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
# Counting the children of a fan-out looks at all of them.
FANS_EVERY_S = 1.0
# How many events one patch tells.
LINES_MAX = 1_000
# Who is further behind than this reads the whole again sooner than it is told all of it.
BEHIND_MAX = 10_000
HEARTBEAT_S = 15.0
RETRY_MS = 1_000

_log = logging.getLogger("windlass.streams")


class Follows(Joins, Protocol):
    """The hub, as a console's stream sees it."""

    def turn(self) -> AbstractAsyncContextManager[Any]:
        """Wait for one's turn to read; not too many read at once."""
        ...

    def unjoin(self, subscription: Subscription) -> None:
        """Give it nothing more."""
        ...


class Topic(Subscription):
    """One of the topics: what the hub has found for it, until it is gathered."""

    def __init__(self, hub: Follows, stream: ConsoleStream, name: str, reader: FeedReader | JobReader) -> None:
        self._stream = stream
        super().__init__(hub, stream.caller, reader, (), math.inf)
        self._follows = hub
        self._news = stream.stirred
        self.name = name
        # Where its client stands once it has everything that was gathered.
        self.place = reader.id
        self.gone: str | None = None
        # How much it had to read by itself since it was opened.
        self.read_alone = 0

    @property
    def taken_s(self) -> float:
        """When its client last came for more: it is there now, unless something waits for it."""
        return self._stream.taken_s

    @taken_s.setter
    def taken_s(self, now_s: float) -> None:
        """Only the stream knows."""

    def take(self, most: int) -> list[Any]:
        """What was found and not gathered yet."""
        found = [self._frames.popleft() for _ in range(min(most, len(self._frames)))]
        if not self.is_joined:
            self.read_alone += len(found)
        return found

    def finish(self, event: str | None = None, why: str = "") -> None:
        """It cannot go on, and so cannot the stream."""
        self._stream.finish(event, why)

    def drop(self, reason: str) -> None:
        """Its client takes nothing."""
        self._stream.drop(reason)

    def stop(self) -> None:
        """Follow no more."""
        self.is_over = True
        self._follows.unjoin(self)

    def _end(self, last: bytes) -> None:
        self._go("ended")

    def _lose(self) -> None:
        self._go("not_found")

    def _go(self, code: str) -> None:
        self.gone, self.is_over = code, True
        self._news.set()


class ConsoleStream:
    """The stream: frames for one client, made by one task from what the topics bring."""

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
        # Something was found, or taken by the client.
        self.stirred = asyncio.Event()
        self._ready = asyncio.Event()
        self._out: deque[bytes] = deque()
        self._is_running = False
        self._topics: deque[Topic] = deque()
        # What the cursor says, in the order in which the topics were given. Those that are gone stay in it: who comes
        # back is told so again, and nothing else.
        self._places: dict[str, str | None] = {}
        # What was gathered and is not told yet.
        self._jobs: set[UUID] = set()
        self._news: dict[UUID, News] = {}
        self._lines = 0
        self._leaving: list[Topic] = []
        self._uncounted: dict[UUID, Topic] = {}
        self._counted_s: dict[UUID, float] = {}
        self._told_s = self._offered_s = -math.inf

    @property
    def taken_s(self) -> float:
        """Since when the client has left something lying; now, if it has not."""
        return self._offered_s if self._out else asyncio.get_running_loop().time()

    @property
    def cursor(self) -> str:
        """Where the client stands once it has what was sent."""
        return cursor_text(list(self._places.items()))

    # What the answer asks for.

    async def next(self, within_s: float) -> bytes | None:
        """What is to be sent now; None after so much silence; `b""` when the stream is over."""
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
        """Send what waits, a last word, and end."""
        if not self.is_over:
            if event is not None:
                self._out.append(frame(event, None, msgspec.json.encode({"reason": why})))
            self.is_over = True
            self._ready.set()
            self.stirred.set()

    def drop(self, reason: str) -> None:
        """Give the client up: what waits is lost to it, until it comes back."""
        if not self.is_over or self._out:
            self.is_over = True
            self._out.clear()
            self._hub.note_drop(reason)
            self._ready.set()
            self.stirred.set()
            if self.on_drop is not None:
                self.on_drop()

    def close(self) -> None:
        """Leave the hub. Its slot is free."""
        self.is_over = True
        self.stirred.set()
        for topic in self._topics:
            topic.stop()
        self._hub.leave(self)

    # Opening.

    async def open(self, topics: Sequence[Wanted]) -> None:
        """Begin with these topics: each from its place on, else from now on."""
        self._places = {one.name: _given(one) for one in topics}
        # A place of another database says that all others are of it too.
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
                # The old place stays in the cursor until the client was told.
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
        reader = JobReader(self._db, job, await plan_of(self._db, job.plan), start)
        return Topic(self._hub, self, wanted.name, reader), is_reset

    def _is_theirs(self, job: JobView | None) -> bool:
        return job is not None and job.deleted_at is None and self._owner in (None, job.caller)

    def _reset(self, topic: Topic) -> bytes:
        self._places[topic.name] = topic.place
        return frame("reset", self.cursor, msgspec.json.encode({"topic": topic.name, "cursor": self.cursor}))

    def _gone(self, name: str, code: str) -> bytes:
        return frame("gone", self.cursor, msgspec.json.encode({"topic": name, "code": code}))

    # Telling.

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
                # What was gathered is still there, and is told when the database is back.
                if not isinstance(error, Unavailable) and not is_transient(error):
                    _log.exception("a console's stream of %s cannot go on", self.caller)
                    self.finish("bye", "a fault of ours")
                await asyncio.sleep(AGAIN_S)

    async def _until_stirred(self, within_s: float | None) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self.stirred.wait()
        except TimeoutError:
            return

    def _gather(self) -> None:
        """Take what the topics have brought, and see that they bring more."""
        # Nobody is always the last in line.
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
        assert isinstance(reader, JobReader)
        news = self._news.get(reader.job.id)
        if news is None:
            news = self._news[reader.job.id] = News(reader.plan)
        news.add(told)
        topic.place = str(told.event.seq)
        if news.is_fanned:
            self._uncounted[reader.job.id] = topic

    def _wait_s(self) -> float | None:
        """After how long there is something to tell; None when there is nothing."""
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
        """Read what was touched, and send it."""
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
        plans = {job_id: topic.reader.plan for job_id, topic in counted.items() if isinstance(topic.reader, JobReader)}
        truth = await read_truth(self._db, self._jobs, self._news, plans)
        fresh = [await self._begin_again(topic) for topic in behind]
        if self.is_over:
            return
        # From here on nothing waits, so what was gathered is told whole or not at all.
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
        """The same topic from now on."""
        topic.stop()
        fresh, _ = await self._feed_topic(Wanted(None))
        return fresh


async def opened(
    hub: Follows, db: Database, epoch: int, caller: CallerContext, topics: Sequence[Wanted], until_s: float
) -> ConsoleStream:
    """A stream of these topics for this caller."""
    made = ConsoleStream(hub, db, epoch, caller, until_s)
    await made.open(topics)
    return made


def _is_feed(topic: Topic) -> bool:
    return isinstance(topic.reader, FeedReader)


def _given(wanted: Wanted) -> str | None:
    """The place of a topic as its client gave it."""
    if wanted.feed is not None:
        return feed_id(*wanted.feed)
    return None if wanted.seq is None else str(wanted.seq)
