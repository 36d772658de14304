"""Callbacks: an outside system reports the end of a step, with the token of the attempt that handed the step over.

The token names one attempt. The report goes through `settle` like any other, and the core decides whether it counts:
the first report does; a second report, or a report for a step that has moved on, does not.

A callback may arrive before the worker has reported `Parked`: the step is still RUNNING. Then the callback settles the
running attempt. The worker's report comes second and changes nothing, and the worker stops the handler at its next
check. The alternative is to refuse the callback until the worker has reported. If the worker died before that, the step
would run again although its result was reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from windlass.core.bell import PollDue
from windlass.core.note import Note
from windlass.core.outcome import Cost, Failure, Report, Success
from windlass.core.states import JobState, StepState
from windlass.engine.note import note
from windlass.engine.settle import settle
from windlass.pure.token import Token
from windlass.store.database import Database
from windlass.store.statements import sql

SOURCE = "callback"


@dataclass(frozen=True, slots=True)
class Place:
    """The step that a token names, as it is now."""

    job_id: UUID
    job_state: JobState
    plan: str
    node: int
    step_state: StepState


@dataclass(frozen=True, slots=True)
class Completed:
    """Whether a callback took effect, and the states of the job and the step after it."""

    is_heard: bool
    job_state: JobState
    step_state: StepState | None


async def place_of(db: Database, token: Token) -> Place | None:
    """Find the step that a token names; None if it does not exist."""

    async def operation(connection: asyncpg.Connection) -> asyncpg.Record | None:
        return await connection.fetchrow(sql("callback_place"), token.job_id, token.no)

    row = await db.run(operation)
    if row is None:
        return None
    return Place(token.job_id, JobState(row["job_state"]), row["plan"], row["node"], StepState(row["step_state"]))


async def hasten(db: Database, provider: str, external_id: str) -> None:
    """Make this work due for a poll now. The provider announced news about it without saying what it is."""

    async def operation(connection: asyncpg.Connection) -> None:
        if await connection.fetchval(sql("work_hasten"), provider, external_id):
            connection.ring(PollDue())

    await db.run(operation)


async def complete(
    db: Database,
    token: Token,
    outcome: Success | Failure,
    *,
    spread: Callable[[], float],
    cost: Cost | None = None,
    source: str = SOURCE,
) -> Completed:
    """End the attempt that the token names. A late or repeated callback changes nothing."""
    report = Report(token.job_id, token.no, token.attempt, outcome, source, cost=cost)
    settled = await settle(db, [report], spread=spread)
    return await _completed(db, token, settled.took_effect[0])


async def progress(db: Database, token: Token, said: Note) -> Completed:
    """Record a note of the running attempt: progress or a preview."""
    return await _completed(db, token, (await note(db, [said]))[0])


async def _completed(db: Database, token: Token, is_heard: bool) -> Completed:
    place = await place_of(db, token)
    if place is None:
        # The pruner removed the job in the meantime.
        return Completed(False, JobState.EXPIRED, None)
    return Completed(is_heard, place.job_state, place.step_state)
