"""Running a finished job again, as a new job of the same plan: from the start, from a step, or from where it failed.

    retry                 keeps every step that succeeded
    rerun                 keeps nothing
    rerun from a step     keeps what succeeded, but for that step and all that depend on it

The old job's row is locked while the new one is made, so it cannot be deleted or pruned meanwhile and its steps are
those that were looked at. That it was run again is written down in the same commit (`redriven`): a job that failed is
a dead letter until then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.bell import RouteDue, WorkQueued
from windlass.core.birth import first_state
from windlass.core.caller import PRIORITY_MAX
from windlass.core.errors import Conflict, WrongState
from windlass.core.plan import Plan
from windlass.core.rerun import Again, again, changed_inputs, restart_from
from windlass.core.retry_job import NOTHING, Kept, Restart, retry_rows
from windlass.core.states import JOB_TERMINAL, STEP_DONE, JobState, StepState
from windlass.core.visibility import Content, Reader, is_visible
from windlass.engine.control import check_actor, unknown
from windlass.engine.submit import Submission, body_hash, check_text, insert
from windlass.recipe.schema import check_inputs
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.outputs import fetch
from windlass.store.plans import read_plan
from windlass.store.statements import sql

# A longer key is kept as its digest: with what is put before it, it would not fit.
_KEY_MAX = 200
STEP_NAME_MAX = 255
Action = Literal["retry", "rerun"]


class Wish(NamedTuple):
    """How a job is to be run again. `inputs` are all of them; None is those that it had."""

    action: Action
    from_step: str | None = None
    inputs: Mapping[str, Any] | None = None

    @property
    def keeps(self) -> bool:
        """Whether the new job starts with what the old one had done."""
        return self.action == "retry" or self.from_step is not None


class _New(NamedTuple):
    """The job that is made, and by whom."""

    id: UUID
    source: str
    key: str | None
    request_id: str | None
    # Only if nobody ran the old one again before.
    once: bool = False
    # The new job's priority is the old one's, and no more than this.
    priority_max: int = PRIORITY_MAX

    def idempotency_key(self, action: Action, of: UUID) -> str | None:
        """Its key in the table, where it shares the caller's with those of submissions."""
        if self.key is None:
            return None
        is_long = len(self.key) > _KEY_MAX
        return f"{action}:{of}:{hashlib.sha256(self.key.encode()).hexdigest() if is_long else self.key}"


async def retry(
    db: Database,
    job_id: UUID,
    new_id: UUID,
    *,
    source: str = "caller",
    key: str | None = None,
    request_id: str | None = None,
    priority_max: int = PRIORITY_MAX,
) -> UUID:
    """A new job that keeps every step that succeeded and runs the rest. A completed job cannot be retried.

    The same `key` gives the same new job.
    """
    return await _make(db, job_id, Wish("retry"), _New(new_id, source, key, request_id, False, priority_max))


async def rerun(
    db: Database,
    job_id: UUID,
    new_id: UUID,
    *,
    from_step: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    source: str = "caller",
    key: str | None = None,
    request_id: str | None = None,
) -> UUID:
    """A new job with the same plan: from the start, or from this step on with what else was done kept.

    It has the same inputs unless others are given. The same `key` gives the same new job, if the same is asked for.
    """
    return await _make(db, job_id, Wish("rerun", from_step, inputs), _New(new_id, source, key, request_id))


async def make(
    db: Database,
    job_id: UUID,
    wish: Wish,
    new_id: UUID,
    *,
    source: str,
    key: str | None = None,
    request_id: str | None = None,
    once: bool = False,
    priority_max: int = PRIORITY_MAX,
) -> UUID:
    """The new job of this wish. With `once`, only if nobody has run the old one again before: WrongState if so."""
    return await _make(db, job_id, wish, _New(new_id, source, key, request_id, once, priority_max))


async def preview(db: Database, job_id: UUID, wish: Wish) -> Again:
    """What the new job would run, without making it; refused as making it would be."""
    async with db.connection() as connection:
        row = await connection.fetchrow(sql("job_row"), job_id)
        if row is None or row["deleted_at"] is not None:
            raise unknown(job_id)
        plan = await read_plan(connection, row["plan"])
        changed = _changed(row, _inputs(row, plan, wish))
        _check_state(row, wish)
        old = await _old_rows(connection, "step_states", job_id, plan)
    if not old:
        # Removed meanwhile; a job that has ended changes in no other way.
        raise unknown(job_id)
    if not wish.keeps:
        old = _fresh(plan)
    return again(plan, _rows(plan, old, wish, changed, row)[0], changed)


async def _make(db: Database, job_id: UUID, wish: Wish, new: _New) -> UUID:
    check_actor(new.source, new.request_id)
    check_text(new.key or "")
    if wish.from_step is not None:
        check_text(wish.from_step)

    async def operation(connection: asyncpg.Connection) -> UUID:
        async with connection.transaction():
            if await connection.fetchrow(sql("job_row"), new.id) is not None:
                # Made before, by a commit whose answer was lost; it may be running by now.
                return new.id
            await drafts.lock(connection, [job_id])
            row = await connection.fetchrow(sql("job_row"), job_id)
            if row is None:
                raise unknown(job_id)
            plan = await read_plan(connection, row["plan"])
            submission = _submission(row, plan, wish, new)
            submission.check()
            first = await _made_before(connection, submission)
            if first is not None:
                return first
            if row["deleted_at"] is not None:
                raise unknown(job_id)
            _check_state(row, wish)
            [answer] = await insert(connection, [submission])
            if isinstance(answer, Conflict):
                raise answer
            if not answer.is_new:
                # Made meanwhile, by another request with the same key.
                return answer.job_id
            await _note(connection, row, new)
            await connection.execute(sql("job_budget_again"), job_id, new.id)
            if wish.keeps:
                changed = _changed(row, submission.inputs)
                old = await _old_rows(connection, "step_rows", job_id, plan)
                rows, restart = _rows(plan, old, wish, changed, row)
                await _keep(connection, job_id, submission, rows, new.source, wish.from_step, restart)
        return new.id

    return await db.run(operation)


async def _made_before(connection: asyncpg.Connection, submission: Submission) -> UUID | None:
    """The job that the same key made. A key that was used is answered before anything else is asked."""
    if submission.idempotency_key is None:
        return None
    row = await connection.fetchrow(sql("job_by_key"), submission.caller, submission.idempotency_key)
    if row is None:
        return None
    if row["body_hash"] != body_hash(submission, drafts.encode(submission.inputs)):
        raise Conflict(
            f"the key was used to run the job again in another way, by job {row['id']}",
            remedy="Use a new key for a new request",
        )
    first: UUID = row["id"]
    return first


async def _note(connection: asyncpg.Connection, row: asyncpg.Record, new: _New) -> None:
    """Write down that the job was run again, if that is of interest: it had ended badly."""
    if JobState(row["state"]) not in JOB_TERMINAL - {JobState.COMPLETED}:
        return
    is_first = await connection.fetchval(sql("redriven_put"), row["id"], new.id, new.source)
    if new.once and not is_first:
        raise WrongState(f"job {row['id']} was run again or discarded already", remedy="Look at the list again")


def _check_state(row: asyncpg.Record, wish: Wish) -> None:
    state = JobState(row["state"])
    if state not in JOB_TERMINAL and wish.keeps:
        what = "retried" if wish.action == "retry" else "run again from a step"
        raise WrongState(f"job {row['id']} is {state}", remedy=f"Only a finished job can be {what}; cancel it first")
    if wish.action == "retry" and state is JobState.COMPLETED:
        raise WrongState(f"job {row['id']} is COMPLETED", remedy="Use rerun to run it again, or a part of it")


def _inputs(row: asyncpg.Record, plan: Plan, wish: Wish) -> Mapping[str, Any]:
    inputs: Mapping[str, Any] = (
        msgspec.json.decode(row["input"]) if wish.inputs is None else check_inputs(plan, wish.inputs)
    )
    return inputs


def _changed(row: asyncpg.Record, inputs: Mapping[str, Any]) -> tuple[str, ...]:
    return changed_inputs(msgspec.json.decode(row["input"]), inputs)


def _submission(row: asyncpg.Record, plan: Plan, wish: Wish, new: _New) -> Submission:
    # Where there is a service, every new job is followed.
    own = str(new.id) if row["is_served"] else None
    return Submission(
        plan=plan,
        inputs=_inputs(row, plan, wish),
        job_id=new.id,
        caller=row["caller"],
        idempotency_key=new.idempotency_key(wish.action, row["id"]),
        labels=None if row["labels"] is None else msgspec.json.decode(row["labels"]),
        priority=min(row["priority"], new.priority_max),
        deadline_s=row["deadline_s"],
        ttl_s=row["ttl_s"],
        correlation_id=new.request_id or row["correlation_id"] or own,
        retry_of=row["id"],
        asked=() if wish.from_step is None else ("from", wish.from_step),
    )


def _fresh(plan: Plan) -> list[Kept]:
    """The rows of a job that has done nothing."""
    return [Kept(no, no, None, StepState.BLOCKED, 0, None, None, None, None) for no in range(len(plan.nodes))]


async def _old_rows(connection: asyncpg.Connection, name: str, job_id: UUID, plan: Plan) -> list[Kept]:
    """The steps of the old job. Nothing is kept of a job whose outputs the new one may not see."""
    rows = await fetch(connection, name, Reader.NEW_JOB, job_id)
    if rows and not is_visible(Content.OUTPUT, Reader.NEW_JOB, JobState(rows[0]["job_state"])):
        return _fresh(plan)
    return [
        Kept(r["no"], r["node"], r["index"], StepState(r["state"]), r["unmet"], r["fan"], r["fanned"], r["item"],
             r["output"])
        for r in rows
    ]  # fmt: skip


def _rows(
    plan: Plan, old: list[Kept], wish: Wish, changed: Sequence[str], row: asyncpg.Record
) -> tuple[list[Kept], Restart]:
    """What the new job starts with; there must be something for it to do."""
    restart = restart_from(plan, old, wish.from_step, changed) if wish.from_step is not None else NOTHING
    rows = retry_rows(plan, old, restart)
    if all(one.state in STEP_DONE for one in rows):
        raise WrongState(f"every step of job {row['id']} is done", remedy="Use rerun to run it again, or a part of it")
    return rows, restart


async def keep(connection: asyncpg.Connection, job_id: UUID, submission: Submission, source: str) -> None:
    """Let a job that this very transaction made begin with what another of its plan had finished."""
    old = await _old_rows(connection, "step_rows", job_id, submission.plan)
    rows = retry_rows(submission.plan, old, holds=submission.holds)
    await _keep(connection, job_id, submission, rows, source)


async def _keep(
    connection: asyncpg.Connection,
    job_id: UUID,
    submission: Submission,
    new: Sequence[Kept],
    source: str,
    from_step: str | None = None,
    restart: Restart = NOTHING,
) -> None:
    new_id, plan = submission.job_id, submission.plan
    static, children = new[: len(plan.nodes)], new[len(plan.nodes) :]
    still_open = sum(row.state not in STEP_DONE for row in new)
    state = first_state([row.state for row in new])
    await connection.execute(sql("retry_job"), new_id, len(new), still_open, state)
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
        [int(row.holds) for row in static],
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
            [int(row.holds) for row in children],
        )
    told: dict[str, Any] = {"of": str(job_id), "states": {str(row.no): row.state for row in new}}
    if from_step is not None:
        # The child jobs of these steps begin afresh too (`child_kin`).
        told |= {"from": from_step, "fresh": sorted(restart.nodes)}
    await connection.execute(sql("retry_event"), new_id, source, drafts.encode(told), submission.correlation_id)
    queues = {plan.nodes[row.node].queue for row in new if row.state is StepState.QUEUED}
    connection.ring(WorkQueued(tuple(sorted(queues))), RouteDue())
