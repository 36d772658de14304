"""What an open job is doing, in one word. The job's state shows its progress, but not what it waits for.

    paused     a caller paused it
    waiting    a step waits for an event, which a person or a program sends, or the job or a step for an approval
    running    an attempt is under way, or a provider or a child job works for a step
    queued     a step is ready: it waits for a worker, a slot, or money
    sleeping   only time has to pass: a timer, or the next attempt

The first word that applies counts. The job list and the overview's totals both come from here, so they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

import asyncpg

from windlass.core.states import StepState
from windlass.core.wait import WaitKind
from windlass.store.statements import sql

# The most steps read of one job.
STEPS_MAX = 1_000


class Activity(StrEnum):
    """What an open job is doing."""

    RUNNING = "running"
    WAITING = "waiting"
    QUEUED = "queued"
    SLEEPING = "sleeping"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Doing:
    """What a job is doing, and what it waits for: a step's `waiting_for`, or `budget:<scope>:<name>`."""

    activity: Activity
    waiting_for: str | None


def activity(*, is_paused: bool, is_awaited: bool, state: str | None, waiting_for: str | None) -> Activity:
    """Return the word for these facts; `state` and `waiting_for` are those of the step that matters most."""
    if is_paused:
        return Activity.PAUSED
    if is_awaited:
        return Activity.WAITING
    if state == StepState.RUNNING:
        return Activity.RUNNING
    if state == StepState.PARKED:
        is_elsewhere = (waiting_for or "").partition(":")[0] in (WaitKind.EXTERNAL, WaitKind.CHILD)
        return Activity.RUNNING if is_elsewhere else Activity.SLEEPING
    # A job without such a step is between two steps: the engine is about to go on.
    return Activity.QUEUED


async def doing(connection: asyncpg.Connection, ids: Sequence[UUID]) -> dict[UUID, Doing]:
    """Return what these jobs are doing. Finished jobs are left out."""
    if not ids:
        return {}
    found: dict[UUID, Doing] = {}
    for row in await connection.fetch(sql("activity_of"), list(ids), STEPS_MAX):
        event = row["event"]
        word = activity(
            is_paused=row["is_paused"],
            is_awaited=event is not None,
            state=row["state"],
            waiting_for=row["waiting_for"],
        )
        told = event if word is Activity.WAITING else row["waiting_for"]
        found[row["id"]] = Doing(word, None if word is Activity.PAUSED else told)
    return found


async def totals(connection: asyncpg.Connection, caller: str | None, most: int) -> dict[Activity, int]:
    """Count open jobs by activity, of all callers or of one. Reads at most `most` jobs."""
    if caller is None:
        rows = await connection.fetch(sql("activity_count"), most, STEPS_MAX)
    else:
        rows = await connection.fetch(sql("activity_count_caller"), most, STEPS_MAX, caller)
    found = dict.fromkeys(Activity, 0)
    for row in rows:
        found[
            activity(
                is_paused=row["is_paused"],
                is_awaited=row["is_awaited"],
                state=row["state"],
                waiting_for=row["waiting_for"],
            )
        ] += row["jobs"]
    return found


async def waiting(
    connection: asyncpg.Connection, ceiling: UUID, floor: UUID, most: int, event: str | None
) -> list[UUID]:
    """Return the newest jobs between two ids that wait for an event, or for the event of this name."""
    return [row["job_id"] for row in await connection.fetch(sql("activity_waiting"), ceiling, floor, most, event)]


async def open_ids(connection: asyncpg.Connection, ceiling: UUID, floor: UUID, most: int) -> list[UUID] | None:
    """Return the open jobs between two ids, newest first; None if there are `most` or more."""
    rows = await connection.fetch(sql("activity_open"), most)
    if len(rows) >= most:
        return None
    return sorted((row["id"] for row in rows if floor <= row["id"] < ceiling), reverse=True)
