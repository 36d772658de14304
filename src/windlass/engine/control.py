"""What callers do to jobs: cancel, pause, resume, retry, re-run, delete."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import asyncpg
import msgspec

from windlass.core import control as law
from windlass.core.draft import Draft
from windlass.core.errors import NotFound, WrongState
from windlass.core.plan import Plan
from windlass.core.retry_job import Kept, retry_rows
from windlass.core.states import JOB_TERMINAL, STEP_DONE, JobState, StepState
from windlass.engine.recipes import read_plan
from windlass.engine.submit import TTL_S, Submission, insert
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.statements import sql


async def cancel(db: Database, job_id: UUID, *, reason: str = "", source: str = "caller") -> bool:
    """End the job now. Running attempts are told to stop, and whatever they report later is refused.

    False when the job had already ended.
    """
    return await _decide(db, job_id, (), source, lambda draft: law.cancel(draft, reason))


async def pause(db: Database, job_id: UUID, *, source: str = "caller") -> bool:
    """Start no further step of the job; False when it was paused already."""
    return await _decide(db, job_id, (StepState.QUEUED,), source, law.pause)


async def resume(db: Database, job_id: UUID, *, source: str = "caller") -> bool:
    """Undo `pause`; False when it was not paused."""
    return await _decide(db, job_id, (StepState.HELD,), source, law.resume)


async def delete(db: Database, job_id: UUID) -> None:
    """Hide a finished job from lists; how it ended stays on its row until retention removes it."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [job_id])
            row = await connection.fetchrow(sql("job_row"), job_id)
            if row is None:
                raise _unknown(job_id)
            if JobState(row["state"]) not in JOB_TERMINAL:
                raise WrongState(f"job {job_id} is {row['state']}", remedy="Cancel it first")
            await connection.execute(sql("job_delete"), job_id)

    await db.run(operation)


async def rerun(db: Database, job_id: UUID, new_id: UUID, *, source: str = "caller") -> UUID:
    """A new job with the same plan and inputs, from the start."""
    return await _again(db, job_id, new_id, source, is_retry=False)


async def retry(db: Database, job_id: UUID, new_id: UUID, *, source: str = "caller") -> UUID:
    """A new job that keeps every step that succeeded and runs the rest. A completed job cannot be retried."""
    return await _again(db, job_id, new_id, source, is_retry=True)


async def _decide(
    db: Database, job_id: UUID, states: tuple[StepState, ...], source: str, decide: Callable[[Draft], bool]
) -> bool:
    async def operation(connection: asyncpg.Connection) -> bool:
        async with connection.transaction():
            await drafts.lock(connection, [job_id])
            draft = await drafts.load_open(connection, job_id, states, lambda h: read_plan(connection, h))
            if draft is None:
                raise _unknown(job_id)
            draft.source = source
            is_changed = decide(draft)
            await drafts.write(connection, [draft])
        return is_changed

    return await db.run(operation)


async def _again(db: Database, job_id: UUID, new_id: UUID, source: str, *, is_retry: bool) -> UUID:
    async def operation(connection: asyncpg.Connection) -> UUID:
        async with connection.transaction():
            if await connection.fetchrow(sql("job_row"), new_id) is not None:
                # Made before, by a commit whose answer was lost; it may be running by now.
                return new_id
            row = await connection.fetchrow(sql("job_row"), job_id)
            if row is None:
                raise _unknown(job_id)
            state = JobState(row["state"])
            if is_retry and state not in JOB_TERMINAL:
                raise WrongState(
                    f"job {job_id} is {state}", remedy="Only a finished job can be retried; cancel it first"
                )
            if is_retry and state is JobState.COMPLETED:
                raise WrongState(f"job {job_id} is COMPLETED", remedy="Use rerun to run all of it again")
            plan = await read_plan(connection, row["plan"])
            await insert(connection, [_submission(row, plan, new_id)])
            if is_retry:
                await _keep(connection, job_id, new_id, plan, source)
        return new_id

    return await db.run(operation)


def _submission(row: asyncpg.Record, plan: Plan, new_id: UUID) -> Submission:
    return Submission(
        plan=plan,
        inputs=msgspec.json.decode(row["input"]),
        job_id=new_id,
        caller=row["caller"],
        labels=None if row["labels"] is None else msgspec.json.decode(row["labels"]),
        priority=row["priority"],
        deadline_s=row["deadline_s"],
        ttl_s=row["ttl_s"] or TTL_S,
        correlation_id=row["correlation_id"],
        retry_of=row["id"],
    )


async def _keep(connection: asyncpg.Connection, job_id: UUID, new_id: UUID, plan: Plan, source: str) -> None:
    rows = await connection.fetch(sql("step_rows"), job_id)
    old = [
        Kept(r["no"], r["node"], r["index"], StepState(r["state"]), r["unmet"], r["fan"], r["fanned"], r["item"],
             r["output"])
        for r in rows
    ]  # fmt: skip
    new = retry_rows(plan, old)
    static, children = new[: len(plan.nodes)], new[len(plan.nodes) :]
    total = max(row.no for row in new) + 1
    still_open = sum(row.state not in STEP_DONE for row in new)
    await connection.execute(sql("retry_job"), new_id, total, still_open)
    await connection.execute(
        sql("retry_step"),
        new_id,
        [row.no for row in static],
        [row.state for row in static],
        [row.unmet for row in static],
        [row.fan for row in static],
        [row.fanned for row in static],
        [row.output for row in static],
        [row.waiting_for for row in static],
    )
    if children:
        await connection.execute(
            sql("retry_children"),
            new_id,
            [row.no for row in children],
            [row.node for row in children],
            [row.index for row in children],
            [row.state for row in children],
            [plan.nodes[row.node].queue for row in children],
            [plan.nodes[row.node].timeout_s for row in children],
            [row.item for row in children],
            [row.output for row in children],
        )
    kept = {str(row.no): row.state for row in new}
    await connection.execute(sql("retry_event"), new_id, source, drafts.encode({"of": str(job_id), "states": kept}))
    queues = ",".join(sorted({plan.nodes[row.node].queue for row in new if row.state is StepState.QUEUED}))
    await connection.execute(sql("retry_bells"), queues)


def _unknown(job_id: UUID) -> NotFound:
    return NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
