"""Pages of jobs by what callers know of them, the newest first.

A page goes on below an id, so it stays what it is while new jobs come in: their ids are greater. Whatever the filter, a
page looks at `SCAN_MAX` rows at most; one that found less than was asked for says from where to go on. So the cost of a
page does not grow with the table, and no page needs a count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.errors import BadInput
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.engine.read import JobView, view_of
from windlass.store.database import Database
from windlass.store.statements import sql

SCAN_MAX = 5_000
PAGE_MAX = 200
# What `find` collects at most, and how many pages it looks at for that.
FIND_MAX = 10_000
LOOKS_MAX = 40
TROUBLE = JOB_TERMINAL - {JobState.COMPLETED}
# An id has the time of the process that made it, `created_at` that of the database; their clocks may differ by this.
_SKEW_MS = 10_000
Keep = Callable[[list[UUID]], Awaitable[list[UUID]]]
_FIRST, _LAST = UUID(int=0), UUID(int=2**128 - 1)
_MS_MAX = 2**48 - 1


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs. Nothing given is no condition; `caller` None is every caller's; `until` is not part of the time."""

    caller: str | None
    states: tuple[JobState, ...] = ()
    recipe: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    corpus: str | None = None
    failed_step: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    with_deleted: bool = False

    def digest(self) -> str:
        """Tells filters apart: a page goes on only under the filter that it began with."""
        told = [
            self.caller, sorted(self.states), self.recipe, sorted(self.labels.items()), self.corpus, self.failed_step,
            self.since and self.since.timestamp(), self.until and self.until.timestamp(), self.with_deleted,
        ]  # fmt: skip
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]

    def check(self) -> None:
        """Refuse what cannot be looked for."""
        for text in (self.caller, self.recipe, self.corpus, self.failed_step, *self.labels, *self.labels.values()):
            if text is not None and ("\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text)):
                raise BadInput("a filter holds a NUL character or half a surrogate pair, which no job has")
        if any(time is not None and time.tzinfo is None for time in (self.since, self.until)):
            raise BadInput("a time without a zone", remedy="Write it as 2026-01-31T12:00:00Z")


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs without their inputs. `next`: the last id that was looked at, if there may be more behind it."""

    jobs: list[JobView]
    next: UUID | None


async def page(db: Database, wanted: JobFilter, *, before: UUID | None = None, limit: int = 50) -> Page:
    """The newest such jobs, below `before` if given. It may be short, or empty, and still not the last."""
    if not 1 <= limit <= PAGE_MAX:
        raise BadInput(f"a page has 1 to {PAGE_MAX} jobs, not {limit}")
    return await _look(db, wanted, before, limit)


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
    name, key = way(wanted)
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
        wanted.corpus,
        wanted.failed_step,
        wanted.since,
        wanted.until,
        wanted.with_deleted,
    ]
    async with db.connection() as connection:
        rows = await connection.fetch(sql(name), *values, *key)
    # A page without jobs has one row, for `reach`.
    views = [view_of(JobView, row) for row in rows if row["id"] is not None]
    if len(views) > limit:
        return Page(views[:limit], views[limit - 1].id)
    return Page(views, rows[0]["reach"])


def way(wanted: JobFilter) -> tuple[str, list[str]]:
    """The statement that looks at the fewest rows for this filter, and what it is keyed by."""
    if wanted.caller is None:
        states = (JobState.FAILED,) if wanted.failed_step is not None else wanted.states
        if len(states) == 1 and states[0] in TROUBLE:
            return "list_all_trouble", [str(states[0])]
        return "list_all", []
    key = [wanted.caller]
    if wanted.failed_step is not None:
        return "list_caller_failed_step", key
    if wanted.corpus is not None:
        return "list_caller_corpus", key
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
