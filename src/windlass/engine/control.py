"""Actions of callers on jobs: cancel, pause, resume, delete. `engine/rerun.py` runs a job again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
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
    """Raise NotFound unless the job exists, is not deleted, and belongs to `owner` (None: any caller)."""
    async with db.connection() as connection:
        if await connection.fetchrow(sql("read_owned"), job_id, owner) is None:
            raise unknown(job_id)


async def cancel(
    db: Database,
    job_id: UUID,
    *,
    reason: str = "",
    source: str = "caller",
    request_id: str | None = None,
    undo: bool = True,
) -> bool:
    """End the job now. Workers stop its running attempts, and later reports of those attempts are refused.

    The effects of its steps are undone, unless `undo` is False. Returns False when the job had already ended. The
    events of this and the functions below carry `request_id`, if given, instead of the job's correlation id.
    """
    check_text(reason)
    return await _decide(db, job_id, (), source, request_id, lambda draft: law.cancel(draft, reason, undo=undo))


async def cancel_each(db: Database, job_ids: Sequence[UUID], *, reason: str, source: str, undo: bool = True) -> None:
    """Cancel a few jobs in one commit. Jobs that have ended or do not exist are left as they are."""

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
                law.cancel(draft, reason, undo=undo)
            await drafts.write(connection, found)

    await db.run(operation)


async def pause(db: Database, job_id: UUID, *, source: str = "caller", request_id: str | None = None) -> bool:
    """Start no further step of the job. Returns False when the job was paused already."""
    return await _decide(db, job_id, (StepState.QUEUED, StepState.HELD), source, request_id, law.pause)


async def resume(db: Database, job_id: UUID, *, source: str = "caller", request_id: str | None = None) -> bool:
    """Undo `pause`. Returns False when the job was not paused."""
    return await _decide(db, job_id, (StepState.HELD,), source, request_id, law.resume)


async def delete(
    db: Database,
    job_id: UUID,
    *,
    source: str = "caller",
    request_id: str | None = None,
    note: Callable[[asyncpg.Connection], Awaitable[None]] | None = None,
) -> None:
    """Hide a finished job from lists. Its row keeps its outcome until retention removes it.

    A job that has ended gets no further event: `note` writes down who did it, in the same transaction, and only if the
    job was not deleted before.
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
            if await connection.fetchrow(sql("job_delete"), job_id) is not None and note is not None:
                await note(connection)

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
    """Build the error for a job that does not exist."""
    return NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
