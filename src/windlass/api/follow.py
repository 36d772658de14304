"""Readers that continue after a place in the feed of a caller's jobs, or in the events of one job.

A frame describes its own event and never later events, so a client that comes back late gets the same frames. A frame
is encoded on first use and shared by all clients. A console's stream uses no frames.
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
from windlass.api.wire.job import job_json, told_at
from windlass.core.plan import Plan
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.documents.tracebacks import streamed_payload
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
# The state of the job after an event. Event types that are missing here do not tell the state.
_STATES = {f"job.{state.lower()}": state for state in JobState} | {
    "job.submitted": JobState.QUEUED,
    "job.kept": JobState.QUEUED,
}


def is_ending(event_type: str) -> bool:
    """Return whether this event ends its job."""
    return _STATES.get(event_type) in JOB_TERMINAL


class FeedTold:
    """An event of the feed, and the place that its client reaches by receiving it."""

    __slots__ = ("_epoch", "_frame", "place", "row")

    def __init__(self, epoch: int, row: FeedRow, place: Place) -> None:
        self._epoch = epoch
        self._frame: bytes | None = None
        self.row = row
        self.place = place

    @property
    def id(self) -> str:
        """Return the place in the form that clients send back."""
        return feed_id(self._epoch, self.place)

    @property
    def frame(self) -> bytes:
        """Return the encoded frame."""
        if self._frame is None:
            self._frame = _feed_frame(self.row, self.id)
        return self._frame


class JobTold:
    """An event of a job, the name of its step, and the job at that time."""

    __slots__ = ("_frame", "event", "job", "step")

    def __init__(self, event: EventView, step: str | None, job: JobView) -> None:
        self._frame: bytes | None = None
        self.event = event
        self.step = step
        self.job = job

    @property
    def frame(self) -> bytes:
        """Return the encoded frame."""
        if self._frame is None:
            self._frame = _job_frame(self.event, self.step, self.job)
        return self._frame


Told = FeedTold | JobTold


class FeedReader:
    """Reads the feed from a place on: the jobs of one caller, or all jobs if `caller` is None."""

    kind = "jobs"

    def __init__(self, db: Database, epoch: int, caller: str | None, place: Place) -> None:
        self._db = db
        self._epoch = epoch
        self.caller = caller
        self.place = place

    @property
    def id(self) -> str:
        """Return the reader's place in the form that clients send back."""
        return feed_id(self._epoch, self.place)

    async def read(self) -> list[FeedTold]:
        """Return the next events; empty when there are none for now."""
        callers = None if self.caller is None else [self.caller]
        rows, end = await feed.after(self._db, self.place.at, callers=callers)
        told = rest(rows, _AT, self.place)
        self.place = Place(max(end, self.place.slot))
        return [FeedTold(self._epoch, row, place) for row, place in told]


def feed_told(epoch: int, rows: Sequence[FeedRow], start: FeedAt) -> list[FeedTold]:
    """Return the rows of a read from `start`, in the order in which clients receive them."""
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


class JobEventReader:
    """Reads the events of one job from a place on."""

    kind = "job"

    def __init__(self, db: Database, job: JobView, plan: Plan, seq: int) -> None:
        self._db = db
        self.plan = plan
        self._nodes: dict[int, int] = {}
        self.job = job
        self.seq = seq
        # Whether the job's end has been read, or came before this reader.
        self.is_ending = job.is_finished

    @property
    def id(self) -> str:
        """Return the reader's place in the form that clients send back."""
        return str(self.seq)

    async def read(self) -> list[JobTold]:
        """Return the next events; empty when there are none for now."""
        found = await read.events_of(self._db, {self.job.id: self.seq}, PAGE)
        return await self.told(found.get(self.job.id, ()))

    async def told(self, events: Sequence[EventView]) -> list[JobTold]:
        """Advance past these events, and return those after the reader's place."""
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

    def twin(self) -> JobEventReader:
        """Return another reader at the same place."""
        return JobEventReader(self._db, self.job, self.plan, self.seq)

    def catch_up(self, other: JobEventReader) -> None:
        """Move to the place of another reader of the same job."""
        self.job, self.seq, self.is_ending = other.job, max(self.seq, other.seq), other.is_ending

    async def end(self) -> bytes | None:
        """Return the last frame once the job has ended and every earlier event was read; else None."""
        return self.end_of(await read.job(self._db, self.job.id))

    def end_of(self, job: JobView) -> bytes | None:
        """Return the last frame if `job` has ended and every earlier event was read; else None."""
        self.job = job
        if not job.is_finished or self.seq < job.event_seq:
            return None
        return frame("end", self.id, job_json(job))

    def _step(self, no: int | None) -> str | None:
        if no is None:
            return None
        node = self._nodes.get(no, no)
        return self.plan.nodes[node].name if node < len(self.plan.nodes) else None

    async def _learn_nodes(self, events: Sequence[EventView]) -> None:
        """Learn the nodes of fan-outs' children, whose numbers lie beyond those of the plan's nodes."""
        first = len(self.plan.nodes)
        children = {e.no for e in events if e.no is not None and e.no >= first}
        # Keeps only the children on this page, because a fan-out has no maximum width.
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
        "at": told_at(at),
    }


def _of_job(job: FeedRow | JobView, at: datetime) -> dict[str, Any]:
    return {
        "recipe": job.recipe,
        "labels": job.labels or {},
        "created_at": told_at(job.created_at),
        "started_at": _by_then(job.started_at, at),
        "finished_at": _by_then(job.finished_at, at),
    }


def _by_then(moment: datetime | None, at: datetime) -> str | None:
    return told_at(moment) if moment is not None and moment <= at else None
