"""Reading on: what comes after a place in the feed of a caller's jobs, or in the events of one job.

What a frame says is that of its event, never of later ones: a reader who comes back late is told the same story. Its
bytes are made when the first one wants them, and once for all: a console wants none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

import msgspec

from windlass.api.sse import frame
from windlass.api.tracebacks import streamed_payload
from windlass.api.wire.job import job_document
from windlass.api.wire.wire import rfc3339
from windlass.core.plan import Plan
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.engine import feed
from windlass.engine.feed import FeedRow
from windlass.pure.cursor import FeedAt, Place, arrange, feed_id, rest
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.views import read
from windlass.views.read import EventView, JobView

PAYLOAD_MAX_BYTES = 16 * 1024
PAGE = 200
_PROGRESS = "step.progress"
_AT = attrgetter("at")
# What an event says of its job's state. Those that are not here say nothing of it.
_STATES = {f"job.{state.lower()}": state for state in JobState} | {
    "job.submitted": JobState.QUEUED,
    "job.kept": JobState.QUEUED,
}


def is_ending(event_type: str) -> bool:
    """Whether it is the event of a job's end."""
    return _STATES.get(event_type) in JOB_TERMINAL


class FeedTold:
    """An event of the feed, and the place that is reached by telling it."""

    __slots__ = ("_epoch", "_frame", "place", "row")

    def __init__(self, epoch: int, row: FeedRow, place: Place) -> None:
        self._epoch = epoch
        self._frame: bytes | None = None
        self.row = row
        self.place = place

    @property
    def id(self) -> str:
        """The place, as clients say it."""
        return feed_id(self._epoch, self.place)

    @property
    def frame(self) -> bytes:
        """Its bytes."""
        if self._frame is None:
            self._frame = _feed_frame(self.row, self.id)
        return self._frame


class JobTold:
    """An event of a job, the name of its step, and the job as it was then."""

    __slots__ = ("_frame", "event", "job", "step")

    def __init__(self, event: EventView, step: str | None, job: JobView) -> None:
        self._frame: bytes | None = None
        self.event = event
        self.step = step
        self.job = job

    @property
    def frame(self) -> bytes:
        """Its bytes."""
        if self._frame is None:
            self._frame = _job_frame(self.event, self.step, self.job)
        return self._frame


Told = FeedTold | JobTold


class FeedReader:
    """A place in the feed, of one caller's jobs or, without a caller, of all."""

    kind = "jobs"

    def __init__(self, db: Database, epoch: int, caller: str | None, place: Place) -> None:
        self._db = db
        self._epoch = epoch
        self.caller = caller
        self.place = place

    @property
    def id(self) -> str:
        """Where it stands, as clients say it."""
        return feed_id(self._epoch, self.place)

    async def read(self) -> list[FeedTold]:
        """What comes next; nothing when that is all for now."""
        callers = None if self.caller is None else [self.caller]
        rows, end = await feed.after(self._db, self.place.at, callers=callers)
        told = rest(rows, _AT, self.place)
        self.place = Place(max(end, self.place.slot))
        return [FeedTold(self._epoch, row, place) for row, place in told]


def feed_told(epoch: int, rows: Sequence[FeedRow], start: FeedAt) -> list[FeedTold]:
    """The rows that a read from `start` gave, in the order in which they are told."""
    return [FeedTold(epoch, row, place) for row, place in arrange(rows, _AT, start)]


def _feed_frame(row: FeedRow, frame_id: str) -> bytes:
    is_progress = row.type == _PROGRESS
    state = _STATES.get(row.type)
    if state is None and row.state not in JOB_TERMINAL:
        state = row.state
    elif is_progress:
        state = JobState.PROCESSING
    data = _data(row.at.job_id, row.at.seq, row.type, row.when, state, row.payload if is_progress else None)
    data |= _of_job(row, row.when)
    return frame("job", frame_id, msgspec.json.encode(data))


class JobReader:
    """A place in the events of one job."""

    kind = "job"

    def __init__(self, db: Database, job: JobView, plan: Plan, seq: int) -> None:
        self._db = db
        self.plan = plan
        self._nodes: dict[int, int] = {}
        self.job = job
        self.seq = seq
        # Whether the job's end has been told, or was before this reader came.
        self.is_ending = job.is_finished

    @property
    def id(self) -> str:
        """Where it stands, as clients say it."""
        return str(self.seq)

    async def read(self) -> list[JobTold]:
        """What comes next; nothing when that is all for now."""
        found = await read.events_of(self._db, {self.job.id: self.seq}, PAGE)
        return await self.told(found.get(self.job.id, ()))

    async def told(self, events: Sequence[EventView]) -> list[JobTold]:
        """These events, which come next, as they are told."""
        await self._learn_nodes(events)
        told = []
        for event in events:
            if event.seq <= self.seq:
                continue
            self.seq = event.seq
            self.is_ending = self.is_ending or is_ending(event.type)
            self._note_times(event)
            told.append(JobTold(event, self._step(event.no), self.job))
        return told

    def twin(self) -> JobReader:
        """Another reader at the same place."""
        return JobReader(self._db, self.job, self.plan, self.seq)

    def catch_up(self, other: JobReader) -> None:
        """Stand where another reader of the same job stands."""
        self.job, self.seq, self.is_ending = other.job, max(self.seq, other.seq), other.is_ending

    async def end(self) -> bytes | None:
        """The last frame, once the job has ended and everything before was told."""
        self.job = await read.job(self._db, self.job.id)
        if not self.job.is_finished or self.seq < self.job.event_seq:
            return None
        return frame("end", self.id, job_document(self.job).model_dump_json().encode())

    def _step(self, no: int | None) -> str | None:
        if no is None:
            return None
        node = self._nodes.get(no, no)
        return self.plan.nodes[node].name if node < len(self.plan.nodes) else None

    async def _learn_nodes(self, events: Sequence[EventView]) -> None:
        """The numbers beyond those of the plan's nodes are of fan-outs' children."""
        first = len(self.plan.nodes)
        children = {e.no for e in events if e.no is not None and e.no >= first}
        # Only those of this page are kept: a fan-out may be as wide as it likes.
        self._nodes = {no: node for no, node in self._nodes.items() if no in children}
        unknown = sorted(children - self._nodes.keys())
        if not unknown:
            return
        async with self._db.connection() as connection:
            rows = await connection.fetch(sql("stream_nodes"), self.job.id, unknown)
        self._nodes |= {row["no"]: row["node"] for row in rows}

    def _note_times(self, event: EventView) -> None:
        if self.job.started_at is None and event.type == "job.processing":
            self.job = replace(self.job, started_at=event.at)
        elif self.job.finished_at is None and is_ending(event.type):
            self.job = replace(self.job, finished_at=event.at)


def _job_frame(event: EventView, step: str | None, job: JobView) -> bytes:
    is_progress = event.type == _PROGRESS
    progress = event.payload if is_progress else None
    data = _data(job.id, event.seq, event.type, event.at, _STATES.get(event.type), progress)
    data |= _of_job(job, event.at)
    payload = msgspec.json.encode(streamed_payload(event.payload))
    is_small = len(payload) <= PAYLOAD_MAX_BYTES
    data |= {
        "step": step,
        "no": event.no,
        "attempt": event.attempt,
        "payload": msgspec.Raw(payload) if is_small else None,
        "has_payload": not is_small,
    }
    name = "job" if event.type.startswith("job.") else "step"
    return frame(name, str(event.seq), msgspec.json.encode(data))


def _data(
    job_id: UUID, seq: int, event_type: str, at: datetime, state: JobState | None, progress: Any
) -> dict[str, Any]:
    said = progress if isinstance(progress, Mapping) else {}
    return {
        "job_id": job_id,
        "seq": seq,
        "type": event_type,
        "status": state,
        "progress_pct": said.get("pct"),
        "progress_message": said.get("message"),
        "at": rfc3339(at),
    }


def _of_job(job: FeedRow | JobView, at: datetime) -> dict[str, Any]:
    return {
        "recipe": job.recipe,
        "labels": job.labels or {},
        "created_at": rfc3339(job.created_at),
        "started_at": _by_then(job.started_at, at),
        "finished_at": _by_then(job.finished_at, at),
    }


def _by_then(moment: datetime | None, at: datetime) -> str | None:
    return rfc3339(moment) if moment is not None and moment <= at else None
