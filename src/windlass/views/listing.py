"""Pages of jobs by filter, newest first.

A page continues below an id, so it is stable while new jobs arrive: their ids are greater. With any filter, a page
reads at most `SCAN_MAX` rows. A page with fewer jobs than requested names the id to continue from. So the cost of a
page does not grow with the table, and no page needs a count.

No column stores what a job is doing (`views/activity.py`). A filter by activity starts from the candidates: jobs that
wait for an event, or open jobs. Each set has an index, so old jobs are found among any number of finished ones.
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
from windlass.store.statements import arguments, sql
from windlass.views import activity
from windlass.views.activity import Activity, Doing
from windlass.views.read import JobView, view_of

SCAN_MAX = 5_000
PAGE_MAX = 200
# The most jobs that `find` collects, and the most pages that it reads for that.
FIND_MAX = 10_000
PAGES_MAX = 40
# The most open jobs that a filter by activity checks one by one. With more, it scans the newest jobs.
OPEN_MAX = 10_000
# The jobs whose activity is read at once, and the most such reads of a page.
_ACTIVE_BATCH = 500
_ACTIVE_READS_MAX = 20
TROUBLE = JOB_TERMINAL - {JobState.COMPLETED}
# An id carries its process's estimate of the database's time, a moment before the commit; `created_at` decides.
_SKEW_MS = 10_000
Keep = Callable[[list[UUID]], Awaitable[list[UUID]]]
_FIRST, _LAST = UUID(int=0), UUID(int=2**128 - 1)
_MS_MAX = 2**48 - 1


@dataclass(frozen=True, slots=True)
class JobFilter:
    """A filter of jobs. An absent value is no condition; `caller` None means every caller; `until` is exclusive.

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
        """Identify the filter: a page continues only under the filter that it began with."""
        told = [
            self.caller, sorted(self.states), self.recipe, sorted(self.labels.items()), self.failed_step,
            self.since and self.since.timestamp(), self.until and self.until.timestamp(), self.with_deleted,
            sorted(self.activities), self.event,
        ]  # fmt: skip
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]

    def check(self) -> None:
        """Refuse values that no job can have."""
        texts = (self.caller, self.recipe, self.failed_step, self.event)
        for text in (*texts, *self.labels, *self.labels.values()):
            if text is not None and ("\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text)):
                raise BadInput("a filter holds a NUL character or half a surrogate pair, which no job has")
        if any(time is not None and time.tzinfo is None for time in (self.since, self.until)):
            raise BadInput("a time without a zone", remedy="Write it as 2026-01-31T12:00:00Z")


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs without their inputs. `next` is the last id read, if more may follow.

    `doing` has the activities of open jobs, where requested.
    """

    jobs: list[JobView]
    next: UUID | None
    doing: Mapping[UUID, Doing] = field(default_factory=dict)


async def page(db: Database, wanted: JobFilter, *, before: UUID | None = None, limit: int = 50) -> Page:
    """Return the newest matching jobs, below `before` if given. A short or empty page need not be the last."""
    if not 1 <= limit <= PAGE_MAX:
        raise BadInput(f"a page has 1 to {PAGE_MAX} jobs, not {limit}")
    found = await _read_page(db, wanted, before, limit)
    if found.doing or not found.jobs:
        return found
    return replace(found, doing=await _doing(db, found.jobs))


async def find(db: Database, wanted: JobFilter, most: int, keep: Keep | None = None) -> tuple[list[UUID], bool]:
    """Return the ids of matching jobs, and whether there may be more. `keep` filters the ids of each page."""
    found: list[UUID] = []
    before: UUID | None = None
    for _ in range(PAGES_MAX):
        seen = await _read_page(db, wanted, before, min(1_000, most - len(found)))
        ids = [job.id for job in seen.jobs]
        found += ids if keep is None else await keep(ids)
        before = seen.next
        if before is None or len(found) >= most:
            break
    return found, before is not None


async def count(db: Database, wanted: JobFilter, most: int = FIND_MAX) -> tuple[int, bool]:
    """Count the matching jobs. Returns whether the count stopped at the limit."""
    found, is_more = await find(db, wanted, most)
    return len(found), is_more


async def _read_page(db: Database, wanted: JobFilter, before: UUID | None, limit: int) -> Page:
    wanted.check()
    if not wanted.activities and wanted.event is None:
        return await _scan(db, wanted, before, limit, await _query(db, wanted))
    kept: list[JobView] = []
    doing: dict[UUID, Doing] = {}
    reached: UUID | None = None
    activities = wanted.activities or (Activity.WAITING,)
    async with aclosing(_active(db, wanted, before, limit + 1)) as batches:
        async for jobs, reached in batches:
            likely = [job for job in jobs if _may_do(job, activities)]
            found = await _doing(db, likely)
            kept += [job for job in likely if job.id in found and found[job.id].activity in activities]
            doing |= found
            if len(kept) > limit:
                kept, reached = kept[:limit], kept[limit - 1].id
                break
    return Page(kept, reached, {job.id: doing[job.id] for job in kept})


def _may_do(job: JobView, activities: Sequence[Activity]) -> bool:
    """Return whether the job may do one of these, as far as its row tells: the row alone decides only `paused`."""
    return Activity.PAUSED in activities if job.is_paused else set(activities) != {Activity.PAUSED}


async def _active(
    db: Database, wanted: JobFilter, before: UUID | None, few: int
) -> AsyncGenerator[tuple[list[JobView], UUID | None], None]:
    """Yield candidate jobs, newest first, each batch with the id to continue from; None is the end.

    The first batch has about `few` jobs, which is enough for most pages.
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
            query = PageQuery("list_ids", {"ids": batch, "caller": wanted.caller})
            found = await _scan(db, wanted, before, len(batch), query)
            yield found.jobs, None if at >= len(ids) and is_all else batch[-1]
        return
    query = await _query(db, wanted)
    for _ in range(_ACTIVE_READS_MAX):
        found = await _scan(db, wanted, before, _ACTIVE_BATCH, query)
        yield found.jobs, found.next
        before = found.next
        if before is None:
            return


async def _doing(db: Database, jobs: list[JobView]) -> dict[UUID, Doing]:
    ids = [job.id for job in jobs if not job.is_finished]
    async with db.connection() as connection:
        return await activity.doing(connection, ids)


async def _scan(db: Database, wanted: JobFilter, before: UUID | None, limit: int, query: PageQuery) -> Page:
    ceiling, floor = _bounds(wanted, before)
    values: dict[str, Any] = {
        "before": ceiling,
        "floor": floor,
        "looks": SCAN_MAX,
        # One more than requested shows whether there is another page.
        "wanted": limit + 1,
        "states": [str(state) for state in wanted.states] or None,
        "recipe": wanted.recipe,
        "labels": msgspec.json.encode(dict(wanted.labels)).decode() if wanted.labels else None,
        "failed_step": wanted.failed_step,
        "since": wanted.since,
        "until": wanted.until,
        "with_deleted": wanted.with_deleted,
        **query.key,
    }
    async with db.connection() as connection:
        rows = await fetch(connection, query.name, Reader.CALLER, *arguments(query.name, values), text=query.text)
    # A page without jobs has one row, for `reach`.
    views = [view_of(JobView, row) for row in rows if row["id"] is not None]
    if len(views) > limit:
        return Page(views[:limit], views[limit - 1].id)
    return Page(views, rows[0]["reach"] if rows else None)


class PageQuery(NamedTuple):
    """The statement that finds jobs, its key parameters, and its text if that differs from the stored one."""

    name: str
    key: Mapping[str, Any]
    text: str | None = None


async def _query(db: Database, wanted: JobFilter) -> PageQuery:
    """Choose the statement for this filter. Only a filter by labels costs a read of the catalogue."""
    if not wanted.labels:
        return PageQuery(*statement_of(wanted))
    async with db.connection() as connection:
        prefix = labels.OF_ALL if wanted.caller is None else labels.OF_A_CALLER
        found = await labels.indexed(connection, wanted.labels, prefix)
    label = found[0] if found else None
    name, key = statement_of(wanted, label)
    return PageQuery(name, key, None if label is None else labels.statement(name, label))


def statement_of(wanted: JobFilter, label: str | None = None) -> tuple[str, dict[str, str]]:
    """Return the name and the key parameters of the statement that reads the fewest rows for this filter.

    `label`: a label of the filter that has an index.
    """
    if wanted.caller is None:
        if label is not None:
            return "list_all_label", {"value": wanted.labels[label]}
        if wanted.failed_step is not None:
            return "list_all_failed", {}
        if len(wanted.states) == 1 and wanted.states[0] in TROUBLE:
            return "list_all_trouble", {"state": str(wanted.states[0])}
        return "list_all", {}
    key = {"caller": wanted.caller}
    if wanted.failed_step is not None:
        return "list_caller_failed_step", key
    if label is not None:
        return "list_caller_label", {**key, "value": wanted.labels[label]}
    if wanted.states and TROUBLE.issuperset(wanted.states):
        return "list_caller_trouble", key
    return "list_caller", key


def _bounds(wanted: JobFilter, before: UUID | None) -> tuple[UUID, UUID]:
    """Return the range of ids for the filter's times: a job's id begins with the millisecond of its creation."""
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
    """Return the jobs that the action would touch, newest first, and whether there may be more."""
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
