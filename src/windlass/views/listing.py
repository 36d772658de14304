"""Pages of jobs by what callers know of them, the newest first.

A page goes on below an id, so it stays what it is while new jobs come in: their ids are greater. Whatever the filter, a
page looks at `SCAN_MAX` rows at most; one that found less than was asked for says from where to go on. So the cost of a
page does not grow with the table, and no page needs a count.

What a job is doing (`views/activity.py`) is in no column. A filter by it begins with the jobs that can be meant: those
that wait for an event, or those that are open. Each has an index, so old ones are found among any number of finished
jobs.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from windlass.core.control import BulkAction, Targets
from windlass.core.errors import BadInput
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.core.visibility import Reader
from windlass.store import labels
from windlass.store.database import Database
from windlass.store.outputs import fetch
from windlass.store.statements import sql
from windlass.views import activity
from windlass.views.activity import Activity, Doing
from windlass.views.read import JobView, view_of

SCAN_MAX = 5_000
PAGE_MAX = 200
# What `find` collects at most, and how many pages it looks at for that.
FIND_MAX = 10_000
LOOKS_MAX = 40
# Open jobs that a filter by activity looks at one after the other; of more, the newest are scanned.
OPEN_MAX = 10_000
# Jobs of which a filter by activity is told at once what they are doing, and how many such looks a page takes.
_ACTIVE_BATCH = 500
_ACTIVE_LOOKS_MAX = 20
TROUBLE = JOB_TERMINAL - {JobState.COMPLETED}
# An id has the database's time as its process reckons it, a moment before the commit; `created_at` decides.
_SKEW_MS = 10_000
Keep = Callable[[list[UUID]], Awaitable[list[UUID]]]
_FIRST, _LAST = UUID(int=0), UUID(int=2**128 - 1)
_MS_MAX = 2**48 - 1


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs. Nothing given is no condition; `caller` None is every caller's; `until` is not part of the time.

    `activities`: open jobs that do one of these. `event`: jobs that wait for the event of this name.
    """

    caller: str | None
    states: tuple[JobState, ...] = ()
    recipe: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    failed_step: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    with_deleted: bool = False
    activities: tuple[Activity, ...] = ()
    event: str | None = None

    def digest(self) -> str:
        """Tells filters apart: a page goes on only under the filter that it began with."""
        told = [
            self.caller, sorted(self.states), self.recipe, sorted(self.labels.items()), self.failed_step,
            self.since and self.since.timestamp(), self.until and self.until.timestamp(), self.with_deleted,
            sorted(self.activities), self.event,
        ]  # fmt: skip
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]

    def check(self) -> None:
        """Refuse what cannot be looked for."""
        texts = (self.caller, self.recipe, self.failed_step, self.event)
        for text in (*texts, *self.labels, *self.labels.values()):
            if text is not None and ("\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text)):
                raise BadInput("a filter holds a NUL character or half a surrogate pair, which no job has")
        if any(time is not None and time.tzinfo is None for time in (self.since, self.until)):
            raise BadInput("a time without a zone", remedy="Write it as 2026-01-31T12:00:00Z")


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs without their inputs. `next`: the last id that was looked at, if there may be more behind it.

    `doing` tells of the open ones what they are doing, where that was asked for.
    """

    jobs: list[JobView]
    next: UUID | None
    doing: Mapping[UUID, Doing] = field(default_factory=dict)


async def page(db: Database, wanted: JobFilter, *, before: UUID | None = None, limit: int = 50) -> Page:
    """The newest such jobs, below `before` if given. It may be short, or empty, and still not the last."""
    if not 1 <= limit <= PAGE_MAX:
        raise BadInput(f"a page has 1 to {PAGE_MAX} jobs, not {limit}")
    found = await _look(db, wanted, before, limit)
    if found.doing or not found.jobs:
        return found
    return replace(found, doing=await _doing(db, found.jobs))


async def find(db: Database, wanted: JobFilter, most: int, keep: Keep | None = None) -> tuple[list[UUID], bool]:
    """The ids of such jobs, and whether there may be more than these; `keep` has a say in which of them count."""
    found: list[UUID] = []
    before: UUID | None = None
    for _ in range(LOOKS_MAX):
        seen = await _look(db, wanted, before, min(1_000, most - len(found)))
        ids = [job.id for job in seen.jobs]
        found += ids if keep is None else await keep(ids)
        before = seen.next
        if before is None or len(found) >= most:
            break
    return found, before is not None


async def count(db: Database, wanted: JobFilter, most: int = FIND_MAX) -> tuple[int, bool]:
    """How many there are, and whether it stopped counting there."""
    found, is_more = await find(db, wanted, most)
    return len(found), is_more


async def _look(db: Database, wanted: JobFilter, before: UUID | None, limit: int) -> Page:
    wanted.check()
    if not wanted.activities and wanted.event is None:
        return await _scan(db, wanted, before, limit, await _way(db, wanted))
    kept: list[JobView] = []
    doing: dict[UUID, Doing] = {}
    reached: UUID | None = None
    words = wanted.activities or (Activity.WAITING,)
    async with aclosing(_active(db, wanted, before, limit + 1)) as batches:
        async for jobs, reached in batches:
            likely = [job for job in jobs if _may(job, words)]
            told = await _doing(db, likely)
            kept += [job for job in likely if job.id in told and told[job.id].activity in words]
            doing |= told
            if len(kept) > limit:
                kept, reached = kept[:limit], kept[limit - 1].id
                break
    return Page(kept, reached, {job.id: doing[job.id] for job in kept})


def _may(job: JobView, words: Sequence[Activity]) -> bool:
    """Whether the job's own row leaves it open: of all words only `paused` is in it."""
    return Activity.PAUSED in words if job.is_paused else set(words) != {Activity.PAUSED}


async def _active(
    db: Database, wanted: JobFilter, before: UUID | None, few: int
) -> AsyncGenerator[tuple[list[JobView], UUID | None], None]:
    """Jobs that may be meant, the newest first, each time with the id to go on from; None is the end.

    The first time about as `few` as are wanted: most pages need no more.
    """
    ceiling, floor = _bounds(wanted, before)
    is_waiting = wanted.event is not None or set(wanted.activities) == {Activity.WAITING}
    async with db.connection() as connection:
        if is_waiting:
            ids: list[UUID] | None = await activity.waiting(connection, ceiling, floor, SCAN_MAX, wanted.event)
        else:
            ids = await activity.open_ids(connection, ceiling, floor, OPEN_MAX)
    if ids is not None:
        is_all = not is_waiting or len(ids) < SCAN_MAX
        at, many = 0, min(few, _ACTIVE_BATCH)
        while at < len(ids):
            batch = ids[at : at + many]
            at, many = at + many, _ACTIVE_BATCH
            found = await _scan(db, wanted, before, len(batch), Way("list_ids", [batch, wanted.caller]))
            yield found.jobs, None if at >= len(ids) and is_all else batch[-1]
        return
    way = await _way(db, wanted)
    for _ in range(_ACTIVE_LOOKS_MAX):
        found = await _scan(db, wanted, before, _ACTIVE_BATCH, way)
        yield found.jobs, found.next
        before = found.next
        if before is None:
            return


async def _doing(db: Database, jobs: list[JobView]) -> dict[UUID, Doing]:
    ids = [job.id for job in jobs if not job.is_finished]
    async with db.connection() as connection:
        return await activity.doing(connection, ids)


async def _scan(db: Database, wanted: JobFilter, before: UUID | None, limit: int, way: Way) -> Page:
    ceiling, floor = _bounds(wanted, before)
    values: list[Any] = [
        ceiling,
        floor,
        SCAN_MAX,
        # One more than asked for: whether there is another page is then known without looking for it.
        limit + 1,
        [str(state) for state in wanted.states] or None,
        wanted.recipe,
        msgspec.json.encode(dict(wanted.labels)).decode() if wanted.labels else None,
        wanted.failed_step,
        wanted.since,
        wanted.until,
        wanted.with_deleted,
    ]
    async with db.connection() as connection:
        rows = await fetch(connection, way.name, Reader.CALLER, *values, *way.key, text=way.text)
    # A page without jobs has one row, for `reach`.
    views = [view_of(JobView, row) for row in rows if row["id"] is not None]
    if len(views) > limit:
        return Page(views[:limit], views[limit - 1].id)
    return Page(views, rows[0]["reach"] if rows else None)


class Way(NamedTuple):
    """The statement that finds jobs, what it is keyed by, and its text if that differs from the stored one."""

    name: str
    key: Sequence[Any]
    text: str | None = None


async def _way(db: Database, wanted: JobFilter) -> Way:
    """The statement for this filter. Only a filter by labels costs a look at the catalogue."""
    if not wanted.labels:
        return Way(*way(wanted))
    async with db.connection() as connection:
        prefix = labels.OF_ALL if wanted.caller is None else labels.OF_A_CALLER
        found = await labels.indexed(connection, wanted.labels, prefix)
    label = found[0] if found else None
    name, key = way(wanted, label)
    return Way(name, key, None if label is None else labels.statement(name, label))


def way(wanted: JobFilter, label: str | None = None) -> tuple[str, list[str]]:
    """The name of the statement that looks at the fewest rows for this filter, and what it is keyed by.

    `label`: a label of the filter that has an index.
    """
    if wanted.caller is None:
        if label is not None:
            return "list_all_label", [wanted.labels[label]]
        states = (JobState.FAILED,) if wanted.failed_step is not None else wanted.states
        if len(states) == 1 and states[0] in TROUBLE:
            return "list_all_trouble", [str(states[0])]
        return "list_all", []
    key = [wanted.caller]
    if wanted.failed_step is not None:
        return "list_caller_failed_step", key
    if label is not None:
        return "list_caller_label", [wanted.caller, wanted.labels[label]]
    if wanted.states and TROUBLE.issuperset(wanted.states):
        return "list_caller_trouble", key
    return "list_caller", key


def _bounds(wanted: JobFilter, before: UUID | None) -> tuple[UUID, UUID]:
    """A job's id begins with the milliseconds at which it was made, so a stretch of time is a stretch of ids."""
    ceiling, floor = before or _LAST, _FIRST
    if wanted.until is not None:
        ceiling = min(ceiling, _id_at(_ms(wanted.until) + _SKEW_MS))
    if wanted.since is not None:
        floor = _id_at(_ms(wanted.since) - _SKEW_MS)
    return ceiling, floor


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _id_at(ms: int) -> UUID:
    return UUID(int=min(max(ms, 0), _MS_MAX) << 80)


_BULK_STATES: dict[BulkAction, tuple[JobState, ...]] = {
    "cancel": tuple(state for state in JobState if state not in JOB_TERMINAL),
    "retry": tuple(state for state in JobState if state in TROUBLE),
}


async def targets(db: Database, wanted: JobFilter, action: BulkAction) -> Targets:
    """The jobs that the action would touch, the newest first, and whether there may be more."""
    states = [state for state in _BULK_STATES[action] if not wanted.states or state in wanted.states]
    if not states:
        return Targets((), False)
    narrow = replace(wanted, states=tuple(states), with_deleted=False)

    async def not_retried(ids: list[UUID]) -> list[UUID]:
        async with db.connection() as connection:
            rows = await connection.fetch(sql("list_retried"), ids)
        retried = {row["job_id"] for row in rows}
        return [job_id for job_id in ids if job_id not in retried]

    ids, is_more = await find(db, narrow, FIND_MAX, not_retried if action == "retry" else None)
    return Targets(tuple(ids), is_more)
