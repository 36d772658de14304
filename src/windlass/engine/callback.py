"""Callbacks: whoever does a step elsewhere reports how it ended, by the token of the attempt that handed it over.

The token speaks for one attempt, so the report goes through the one door (`settle`) like any other, and the law tells
whether it still counts: the first one does, a second one and one that comes after the step went on do not.

A callback may be faster than the worker that handed the work over: the step is still RUNNING, and its `Parked` is on
the way. Then the callback settles the running attempt. The alternative, to send it away until the worker has spoken,
would lose it with a worker that dies before: the step would be done again while its result was already told. The
worker's own report comes second then and changes nothing. Its handler is stopped at the next heartbeat, as it is
whenever a step is no longer the worker's.
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
    """Where a token points, as it is now."""

    job_id: UUID
    job_state: JobState
    plan: str
    node: int
    step_state: StepState


@dataclass(frozen=True, slots=True)
class Completed:
    """What became of a callback, and where the job and the step stand after it."""

    is_heard: bool
    job_state: JobState
    step_state: StepState | None


async def place_of(db: Database, token: Token) -> Place | None:
    """The step that a token speaks for; None if there is no such step."""

    async def operation(connection: asyncpg.Connection) -> asyncpg.Record | None:
        return await connection.fetchrow(sql("callback_place"), token.job_id, token.no)

    row = await db.run(operation)
    if row is None:
        return None
    return Place(token.job_id, JobState(row["job_state"]), row["plan"], row["node"], StepState(row["step_state"]))


async def hasten(db: Database, provider: str, external_id: str) -> None:
    """Have the provider asked about this work now: it said that there is something to hear, and not what."""

    async def operation(connection: asyncpg.Connection) -> None:
        if await connection.fetchval(sql("work_hasten"), provider, external_id):
            connection.ring(PollDue())

    await db.run(operation)


async def complete(
    db: Database,
    token: Token,
    outcome: Success | Failure,
    *,
    chance: Callable[[], float],
    cost: Cost | None = None,
    source: str = SOURCE,
) -> Completed:
    """End the attempt that the token speaks for; a callback that is late or doubled changes nothing."""
    report = Report(token.job_id, token.no, token.attempt, outcome, source, cost=cost)
    settled = await settle(db, [report], chance=chance)
    return await _completed(db, token, settled.took_effect[0])


async def progress(db: Database, token: Token, said: Note) -> Completed:
    """Take down what the attempt says before its end: progress, a preview."""
    return await _completed(db, token, (await note(db, [said]))[0])


async def _completed(db: Database, token: Token, is_heard: bool) -> Completed:
    place = await place_of(db, token)
    if place is None:
        # Retention took the job meanwhile.
        return Completed(False, JobState.EXPIRED, None)
    return Completed(is_heard, place.job_state, place.step_state)
