"""What callers do to jobs: cancel, pause, resume, retry, re-run, delete."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from windlass.core import control as law
from windlass.core.draft import Draft
from windlass.core.errors import Conflict, NotFound, WrongState
from windlass.core.plan import Plan
from windlass.core.retry_job import Kept, retry_rows
from windlass.core.states import JOB_TERMINAL, STEP_DONE, JobState, StepState
from windlass.engine.recipes import read_plan
from windlass.engine.submit import TTL_S, Submission, check_text, insert
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.statements import sql

# A longer key of a retry is kept as its digest: with what is put before it, it would not fit.
_KEY_MAX = 200


async def owned(db: Database, job_id: UUID, owner: str | None) -> None:
    """NotFound unless the job is there, was not deleted, and is this caller's (None: whoever's it is)."""
    async with db.connection() as connection:
        if await connection.fetchrow(sql("read_owned"), job_id, owner) is None:
            raise _unknown(job_id)


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
    return await _decide(db, job_id, (StepState.QUEUED,), source, request_id, law.pause)


async def resume(db: Database, job_id: UUID, *, source: str = "caller", request_id: str | None = None) -> bool:
    """Undo `pause`; False when it was not paused."""
    return await _decide(db, job_id, (StepState.HELD,), source, request_id, law.resume)


async def delete(db: Database, job_id: UUID, *, source: str = "caller", request_id: str | None = None) -> None:
    """Hide a finished job from lists; how it ended stays on its row until retention removes it.

    Nothing is written down about who did it: that is the audit's. A job that has ended gets no further event.
    """
    _check_actor(source, request_id)

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


async def rerun(
    db: Database,
    job_id: UUID,
    new_id: UUID,
    *,
    source: str = "caller",
    key: str | None = None,
    request_id: str | None = None,
) -> UUID:
    """A new job with the same plan and inputs, from the start. The same `key` gives the same new job."""
    return await _again(db, job_id, _New(new_id, source, key, request_id, "rerun"))


async def retry(
    db: Database,
    job_id: UUID,
    new_id: UUID,
    *,
    source: str = "caller",
    key: str | None = None,
    request_id: str | None = None,
) -> UUID:
    """A new job that keeps every step that succeeded and runs the rest. A completed job cannot be retried.

    The same `key` gives the same new job.
    """
    return await _again(db, job_id, _New(new_id, source, key, request_id, "retry"))


class _New(NamedTuple):
    """The job that a retry or a re-run makes."""

    id: UUID
    source: str
    key: str | None
    request_id: str | None
    action: Literal["retry", "rerun"]

    def idempotency_key(self, of: UUID) -> str | None:
        """Its key in the table, where it shares the caller's with those of submissions."""
        if self.key is None:
            return None
        is_long = len(self.key) > _KEY_MAX
        return f"{self.action}:{of}:{hashlib.sha256(self.key.encode()).hexdigest() if is_long else self.key}"


def _check_actor(source: str, request_id: str | None) -> None:
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
    _check_actor(source, request_id)

    async def operation(connection: asyncpg.Connection) -> bool:
        async with connection.transaction():
            await drafts.lock(connection, [job_id])
            draft = await drafts.load_open(connection, job_id, states, lambda h: read_plan(connection, h))
            if draft is None:
                raise _unknown(job_id)
            draft.source = source
            if request_id is not None:
                # Of the events that this draft writes; the job keeps its own.
                draft.job.correlation_id = request_id
            is_changed = decide(draft)
            await drafts.write(connection, [draft])
        return is_changed

    return await db.run(operation)


async def _again(db: Database, job_id: UUID, new: _New) -> UUID:
    _check_actor(new.source, new.request_id)
    check_text(new.key or "")

    async def operation(connection: asyncpg.Connection) -> UUID:
        async with connection.transaction():
            if await connection.fetchrow(sql("job_row"), new.id) is not None:
                # Made before, by a commit whose answer was lost; it may be running by now.
                return new.id
            row = await connection.fetchrow(sql("job_row"), job_id)
            if row is None:
                raise _unknown(job_id)
            key = new.idempotency_key(job_id)
            if key is not None:
                # A finished job stays finished, but a key that was used is answered before anything else is asked.
                first: UUID | None = await connection.fetchval(sql("job_by_key"), row["caller"], key)
                if first is not None:
                    return first
            _check_state(row, new.action)
            plan = await read_plan(connection, row["plan"])
            submission = _submission(row, plan, new, key)
            submission.check()
            [answer] = await insert(connection, [submission])
            if isinstance(answer, Conflict):
                raise answer
            if not answer.is_new:
                # Made meanwhile, by another request with the same key.
                return answer.job_id
            await connection.execute(sql("job_budget_again"), job_id, new.id)
            if new.action == "retry":
                await keep(connection, job_id, submission, new.source)
        return new.id

    return await db.run(operation)


def _check_state(row: asyncpg.Record, action: str) -> None:
    state = JobState(row["state"])
    if action == "retry" and state not in JOB_TERMINAL:
        raise WrongState(f"job {row['id']} is {state}", remedy="Only a finished job can be retried; cancel it first")
    if action == "retry" and state is JobState.COMPLETED:
        raise WrongState(f"job {row['id']} is COMPLETED", remedy="Use rerun to run all of it again")


def _submission(row: asyncpg.Record, plan: Plan, new: _New, key: str | None) -> Submission:
    # Where there is a service, every new job is followed.
    own = str(new.id) if row["is_served"] else None
    return Submission(
        plan=plan,
        inputs=msgspec.json.decode(row["input"]),
        job_id=new.id,
        caller=row["caller"],
        idempotency_key=key,
        labels=None if row["labels"] is None else msgspec.json.decode(row["labels"]),
        priority=row["priority"],
        deadline_s=row["deadline_s"],
        ttl_s=row["ttl_s"] or TTL_S,
        correlation_id=new.request_id or row["correlation_id"] or own,
        retry_of=row["id"],
    )


async def keep(connection: asyncpg.Connection, job_id: UUID, submission: Submission, source: str) -> None:
    """Let a job that this very transaction made begin with what another of its plan had finished."""
    new_id, plan = submission.job_id, submission.plan
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
    payload = drafts.encode({"of": str(job_id), "states": kept})
    await connection.execute(sql("retry_event"), new_id, source, payload, submission.correlation_id)
    queues = ",".join(sorted({plan.nodes[row.node].queue for row in new if row.state is StepState.QUEUED}))
    await connection.execute(sql("retry_bells"), queues)


def _unknown(job_id: UUID) -> NotFound:
    return NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
