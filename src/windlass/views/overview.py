"""The overview: problems that need a person, throughput, waiting work and durations.

Each part is a bounded read of an index that exists for other reasons, or of `minutes`, which the auditor fills. A
caller without admin rights sees only its own jobs, from the newest, and no queues or workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

import asyncpg
import msgspec

from windlass.core.queue import ordinary
from windlass.core.states import JobState
from windlass.core.visibility import Reader
from windlass.pure.length import class_of, share
from windlass.store.database import Database
from windlass.store.outputs import fetchrow
from windlass.store.statements import sql
from windlass.views import activity, dead_letters, gauge
from windlass.views.handlers import Missing, missing

MINUTES = 60
ENDED_MAX = 50_000
OPEN_MAX = 10_000
RUNNING_MAX = 10_000
WAITS_MAX = 1_000
SHOWN_MAX = 100
OWN_MAX = 5_000
# Thresholds for a person's attention.
OLD_S = 300.0
LOST_S = 3600.0
FAILING_MINUTES = 15
FAILING_MIN, FAILING_PART = 3, 0.2
AttentionKind = Literal[
    "failing_recipe", "waiting_person", "budget_short", "dead_letters", "no_workers", "missing_handler", "lost_worker",
    "breaker_open", "old_queue",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attention:
    """A problem that may need a person, and the console page to look at."""

    kind: AttentionKind
    title: str
    detail: str
    count: int
    link: str


@dataclass(frozen=True, slots=True)
class QueueLook:
    """A queue: its ready and running steps, the age of its oldest ready step, and the number of its workers."""

    queue: str
    ready: int
    running: int
    oldest_s: float
    workers: int


@dataclass(frozen=True, slots=True)
class RecipeLook:
    """How the jobs of a recipe ended in the last hour."""

    recipe: str
    completed: int
    failed: int
    p50_s: float | None
    p95_s: float | None


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole overview. `is_capped` says that a count stopped at its limit."""

    as_of: datetime
    attention: list[Attention]
    minutes: list[datetime]
    completed: list[int]
    failed: list[int]
    queues: list[QueueLook]
    recipes: list[RecipeLook]
    totals: dict[str, int]
    is_capped: bool


@dataclass(slots=True)
class _Ended:
    """Ended jobs, by minute and by recipe."""

    completed: dict[datetime, int] = field(default_factory=dict)
    failed: dict[datetime, int] = field(default_factory=dict)
    # By recipe: durations of completed jobs, the number of failures, and the recent ends of either kind.
    lengths: dict[str, dict[int, int]] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    late: dict[str, list[int]] = field(default_factory=dict)

    def add(self, recipe: str, is_completed: bool, length: int, count: int, late: int) -> None:
        """Count jobs of a recipe, `late` of them as recent."""
        self.late.setdefault(recipe, [0, 0])[0 if is_completed else 1] += late
        if is_completed:
            of_recipe = self.lengths.setdefault(recipe, {})
            of_recipe[length] = of_recipe.get(length, 0) + count
        else:
            self.failures[recipe] = self.failures.get(recipe, 0) + count


async def overview(db: Database, caller: str | None) -> Overview:
    """Build the overview of one caller's jobs, or of the whole installation."""
    waiting = await gauge.queues(db, OPEN_MAX) if caller is None else {}
    unserved = await missing(db) if waiting else []
    async with db.connection() as connection:
        workers = await connection.fetchrow(sql("overview_workers"), LOST_S)
        now: datetime = workers["now"]
        ended, looked = await _ended(connection, caller, now)
        totals, is_open_capped = await _totals(connection, caller)
        waits = await connection.fetch(sql("overview_waits"), WAITS_MAX, caller)
        letters = await dead_letters.count(connection, caller)
        newest = await fetchrow(connection, "overview_error", Reader.CALLER, letters.newest)
        queues: list[QueueLook] = []
        short = await connection.fetch(sql("overview_short"), WAITS_MAX, caller)
        attention = [*_failing(ended), *_people(waits), *_short(short), *_letters(letters, newest)]
        if caller is None:
            running = await connection.fetch(sql("overview_running"), RUNNING_MAX)
            breakers = await connection.fetch(sql("overview_breakers"), SHOWN_MAX)
            queues = _queues(waiting, running, msgspec.json.decode(workers["served"]))
            attention += [
                *_idle(queues),
                *_unserved(unserved, queues),
                *_lost(workers),
                *_breakers(breakers),
                *_old(queues),
            ]
    last = now.replace(second=0, microsecond=0)
    minutes = [last - timedelta(minutes=back) for back in range(MINUTES - 1, -1, -1)]
    return Overview(
        as_of=now,
        attention=attention[:SHOWN_MAX],
        minutes=minutes,
        completed=[ended.completed.get(minute, 0) for minute in minutes],
        failed=[ended.failed.get(minute, 0) for minute in minutes],
        queues=queues[:SHOWN_MAX],
        recipes=_recipes(ended)[:SHOWN_MAX],
        totals=totals,
        is_capped=any(
            (
                looked,
                is_open_capped,
                letters.is_capped,
                sum(row["jobs"] for row in waits) >= WAITS_MAX,
                *(queue.ready >= OPEN_MAX for queue in queues),
            )
        ),
    )


async def _ended(connection: asyncpg.Connection, caller: str | None, now: datetime) -> tuple[_Ended, bool]:
    """Count how jobs ended. Returns whether the count is incomplete."""
    if caller is not None:
        return await _own_ended(connection, caller, now)
    found = _Ended()
    minutes = await connection.fetch(sql("overview_minutes"), MINUTES, ENDED_MAX)
    for row in minutes:
        found.completed[row["minute"]], found.failed[row["minute"]] = row["completed"], row["failed"]
    for row in await connection.fetch(sql("overview_recipes"), MINUTES, ENDED_MAX, FAILING_MINUTES):
        found.add(row["recipe"], row["state"] == JobState.COMPLETED, row["length"], row["count"], row["late"])
    return found, sum(row["rows"] for row in minutes) >= ENDED_MAX


async def _own_ended(connection: asyncpg.Connection, caller: str, now: datetime) -> tuple[_Ended, bool]:
    found = _Ended()
    rows = await connection.fetch(sql("overview_ended_caller"), MINUTES, OWN_MAX, caller)
    for row in rows:
        if row["state"] == JobState.CANCELLED:
            continue
        is_completed = row["state"] == JobState.COMPLETED
        by_minute = found.completed if is_completed else found.failed
        by_minute[row["minute"]] = by_minute.get(row["minute"], 0) + 1
        is_late = row["minute"] > now - timedelta(minutes=FAILING_MINUTES)
        found.add(row["recipe"], is_completed, class_of(row["seconds"]), 1, int(is_late))
    return found, len(rows) >= OWN_MAX


async def _totals(connection: asyncpg.Connection, caller: str | None) -> tuple[dict[str, int], bool]:
    """Count open jobs by activity."""
    most = OPEN_MAX if caller is None else OWN_MAX
    counted = await activity.totals(connection, caller, most)
    is_open = sum(counted.values())
    return {"open": is_open, **{str(word): count for word, count in counted.items()}}, is_open >= most


def _queues(
    waiting: Mapping[str, gauge.Queue], running: Iterable[asyncpg.Record], served: Mapping[str, int]
) -> list[QueueLook]:
    at_work = {row["queue"]: row["steps"] for row in running}
    names = sorted({*waiting, *at_work, *served})
    nothing = gauge.Queue(0, 0.0)
    return [
        QueueLook(
            name,
            waiting.get(name, nothing).steps,
            at_work.get(name, 0),
            round(waiting.get(name, nothing).age_s, 3),
            # The workers of an ordinary queue start a process for its apart twin when a step waits there.
            served.get(name) or served.get(ordinary(name), 0),
        )
        for name in names
    ]


def _recipes(ended: _Ended) -> list[RecipeLook]:
    names = {*ended.lengths, *ended.failures}
    found = [
        RecipeLook(
            name,
            sum(ended.lengths.get(name, {}).values()),
            ended.failures.get(name, 0),
            share(ended.lengths.get(name, {}), 0.5),
            share(ended.lengths.get(name, {}), 0.95),
        )
        for name in names
    ]
    return sorted(found, key=lambda one: (-(one.completed + one.failed), one.recipe))


def _failing(ended: _Ended) -> list[Attention]:
    found = [
        (failed, done, name)
        for name, (done, failed) in ended.late.items()
        if failed >= FAILING_MIN and failed >= FAILING_PART * (done + failed)
    ]
    return [
        Attention(
            "failing_recipe",
            f"{name} is failing",
            f"{failed} of {done + failed} jobs failed in the last {FAILING_MINUTES} minutes",
            failed,
            _link("/jobs", status="FAILED,TIMEOUT", recipe=name),
        )
        for failed, done, name in sorted(found, key=lambda one: (-one[0], one[2]))
    ]


def _people(waits: Sequence[asyncpg.Record]) -> list[Attention]:
    return [
        Attention(
            "waiting_person",
            f"{_jobs(row['jobs'])} wait{'s' if row['jobs'] == 1 else ''} for “{row['name']}”",
            f"{'It is' if row['jobs'] == 1 else 'The oldest is'} job …{str(row['oldest'])[-8:]}",
            row["jobs"],
            f"/jobs/{row['oldest']}" if row["jobs"] == 1 else _link("/jobs", event=row["name"]),
        )
        for row in waits
    ]


def _short(rows: Sequence[asyncpg.Record]) -> list[Attention]:
    """Report budgets that hold steps back until a caller raises them, or until a reservation is returned."""
    found = []
    for row in rows:
        scope, _, name = row["behind"].partition(":")
        whose = "a job" if scope == "job" else f"{scope} {name}"
        verb = "waits" if row["steps"] == 1 else "wait"
        link = f"/jobs/{name}" if scope == "job" else f"/jobs/{row['oldest']}" if row["jobs"] == 1 else "/providers"
        title = f"The budget of {whose} is used up"
        detail = f"{_steps(row['steps'])} of {_jobs(row['jobs'])} {verb} for money; raise the budget to continue"
        found.append(Attention("budget_short", title, detail, row["steps"], link))
    return found


def _letters(letters: dead_letters.Count, newest: asyncpg.Record | None) -> list[Attention]:
    if not letters.dead or newest is None:
        return []
    title = f"{_jobs(letters.dead)} failed and {'was' if letters.dead == 1 else 'were'} not run again"
    told = f"{newest['recipe']} at {newest['step'] or 'its start'}: {newest['message'] or newest['code']}"
    detail = told if letters.dead == 1 else f"The newest is {told}"
    return [Attention("dead_letters", title, detail, letters.dead, "/dead-letters")]


def _idle(queues: Iterable[QueueLook]) -> list[Attention]:
    return [
        Attention(
            "no_workers",
            f"No worker serves the queue {one.queue}",
            f"{_steps(one.ready)} {'is' if one.ready == 1 else 'are'} ready",
            one.ready,
            "/workers",
        )
        for one in queues
        if one.ready and not one.workers
    ]


def _unserved(found: Iterable[Missing], queues: Iterable[QueueLook]) -> list[Attention]:
    """Report handlers that no live worker has, in queues that have workers."""
    served = {one.queue for one in queues if one.workers}
    return [
        Attention(
            "missing_handler",
            f"No live worker has the handler {one.handler}",
            f"Steps of the queue {one.queue} wait for it; {one.last}",
            1,
            "/workers",
        )
        for one in found
        if one.queue in served
    ]


def _lost(workers: asyncpg.Record) -> list[Attention]:
    count = workers["lost"]
    if not count:
        return []
    title = f"{count} worker{'' if count == 1 else 's'} lost in the last hour"
    return [Attention("lost_worker", title, "Other workers run their steps", count, "/workers")]


def _breakers(rows: Iterable[asyncpg.Record]) -> list[Attention]:
    return [
        Attention(
            "breaker_open", f"Provider {row['name']} is not used", (row["error"] or "It failed too often")[:200], 1,
            "/providers",
        )
        for row in rows
    ]  # fmt: skip


def _old(queues: Iterable[QueueLook]) -> list[Attention]:
    return [
        Attention(
            "old_queue",
            f"The queue {one.queue} is behind",
            f"The oldest job in it was made {round(one.oldest_s / 60)} minutes ago; {_steps(one.ready)} ready",
            one.ready,
            "/workers",
        )
        for one in queues
        if one.workers and one.oldest_s >= OLD_S
    ]


def _jobs(count: int) -> str:
    return f"{count:,} job{'' if count == 1 else 's'}"


def _steps(count: int) -> str:
    return f"{count:,} step{'' if count == 1 else 's'}"


def _link(path: str, **query: Any) -> str:
    return f"{path}?{urlencode(query)}"
