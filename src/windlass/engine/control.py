"""What callers do to jobs: cancel, pause, resume, delete. To run one again: `engine/rerun.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg

from windlass.core import control as law
from windlass.core.draft import Draft
from windlass.core.errors import NotFound, WrongState
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.engine.submit import check_text
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql


async def owned(db: Database, job_id: UUID, owner: str | None) -> None:
    """NotFound unless the job is there, was not deleted, and is this caller's (None: whoever's it is)."""
    async with db.connection() as connection:
        if await connection.fetchrow(sql("read_owned"), job_id, owner) is None:
            raise unknown(job_id)


async def cancel(
    db: Database, job_id: UUID, *, reason: str = "", source: str = "caller", request_id: str | None = None
) -> bool:
    """End the job now. Running attempts are told to stop, and whatever they report later is refused.

    False when the job had already ended. The events of this and of the others below carry the request's id, if one is
    given, in place of the job's own correlation id.
    """
    check_text(reason)
    return await _decide(db, job_id, (), source, request_id, lambda draft: law.cancel(draft, reason))


async def cancel_each(db: Database, job_ids: Sequence[UUID], *, reason: str, source: str) -> None:
    """The same for a few jobs in one commit; those that have ended or are not there are left as they are."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await drafts.lock(connection, job_ids)
            found = [
                draft
                for job_id in sorted(job_ids)
                if (draft := await drafts.load_open(connection, job_id, (), lambda h: read_plan(connection, h)))
            ]
            for draft in found:
                draft.source = source
                law.cancel(draft, reason)
            await drafts.write(connection, found)

    await db.run(operation)


async def pause(db: Database, job_id: UUID, *, source: str = "caller", request_id: str | None = None) -> bool:
    """Start no further step of the job; False when it was paused already."""
    return await _decide(db, job_id, (StepState.QUEUED, StepState.HELD), source, request_id, law.pause)


async def resume(db: Database, job_id: UUID, *, source: str = "caller", request_id: str | None = None) -> bool:
    """Undo `pause`; False when it was not paused."""
    return await _decide(db, job_id, (StepState.HELD,), source, request_id, law.resume)


async def delete(db: Database, job_id: UUID, *, source: str = "caller", request_id: str | None = None) -> None:
    """Hide a finished job from lists; how it ended stays on its row until retention removes it.

    Nothing is written down about who did it: that is the audit's. A job that has ended gets no further event.
    """
    check_actor(source, request_id)

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [job_id])
            row = await connection.fetchrow(sql("job_row"), job_id)
            if row is None:
                raise unknown(job_id)
            if JobState(row["state"]) not in JOB_TERMINAL:
                raise WrongState(f"job {job_id} is {row['state']}", remedy="Cancel it first")
            await connection.execute(sql("job_delete"), job_id)

    await db.run(operation)


def check_actor(source: str, request_id: str | None) -> None:
    """Refuse names that cannot be stored."""
    check_text(source)
    if request_id is not None:
        check_text(request_id)


async def _decide(
    db: Database,
    job_id: UUID,
    states: tuple[StepState, ...],
    source: str,
    request_id: str | None,
    decide: Callable[[Draft], bool],
) -> bool:
    check_actor(source, request_id)

    async def operation(connection: asyncpg.Connection) -> bool:
        async with connection.transaction():
            await drafts.lock(connection, [job_id])
            draft = await drafts.load_open(connection, job_id, states, lambda h: read_plan(connection, h))
            if draft is None:
                raise unknown(job_id)
            draft.source = source
            if request_id is not None:
                draft.correlation_id = request_id
            is_changed = decide(draft)
            await drafts.write(connection, [draft])
        return is_changed

    return await db.run(operation)


def unknown(job_id: UUID) -> NotFound:
    """The refusal for a job that is not there."""
    return NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
