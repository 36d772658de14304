"""Runs a finished job again as a new job of the same plan: from the start, from a step, or from where it failed.

    retry                 keeps every step that succeeded
    rerun                 keeps nothing
    rerun from a step     keeps the steps that succeeded, except that step and its dependents

The old job's row is locked while the new job is made. The old job cannot be deleted or pruned meanwhile, and its steps
stay as they were read. The same commit records that the job was run again (`redriven`): until then a failed job is a
dead letter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.bell import RouteDue, WorkQueued
from windlass.core.birth import first_state
from windlass.core.caller import PRIORITY_MAX
from windlass.core.errors import Conflict, Denied, WrongState
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.plan import Plan
from windlass.core.rerun import Again, again, changed_inputs, restart_from
from windlass.core.retry_job import NOTHING, Kept, Restart, retry_rows
from windlass.core.states import JOB_TERMINAL, STEP_DONE, JobState, StepState
from windlass.core.visibility import Content, Reader, is_visible
from windlass.engine.asker import stored_asker
from windlass.engine.control import check_actor, unknown
from windlass.engine.door import enter, gated, refusal_of
from windlass.engine.policies import Current
from windlass.engine.submit import Accepted, Submission, body_hash, check_text, insert
from windlass.engine.undo import Owned, moved, owned, resumed
from windlass.recipe.schema import check_inputs
from windlass.store import drafts
from windlass.store.columns import encode
from windlass.store.database import Database
from windlass.store.outputs import fetch
from windlass.store.plans import read_plan
from windlass.store.statements import bound, sql

# A longer key is stored as its digest: with its prefix it would not fit.
_KEY_MAX = 200
STEP_NAME_MAX = 255
Action = Literal["retry", "rerun"]


class Wish(NamedTuple):
    """How to run a job again. `inputs` replace all inputs; None keeps the old ones."""

    action: Action
    from_step: str | None = None
    inputs: Mapping[str, Any] | None = None

    @property
    def keeps(self) -> bool:
        """Whether the new job starts with the finished steps of the old one."""
        return self.action == "retry" or self.from_step is not None


class _New(NamedTuple):
    """The id and options of the new job."""

    id: UUID
    source: str
    key: str | None
    request_id: str | None
    # Refuse if the old job was run again before.
    once: bool = False
    # The new job's priority is the old one's, but at most this.
    priority_max: int = PRIORITY_MAX

    def idempotency_key(self, action: Action, of: UUID) -> str | None:
        """Return the stored key. The prefix keeps it apart from the keys of the caller's submissions."""
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
    """Make a new job that keeps every step that succeeded and runs the rest. A completed job cannot be retried.

    The same `key` returns the same new job.
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
    """Make a new job with the same plan, from the start or from a step. From a step, other finished steps are kept.

    The inputs stay the same unless `inputs` is given. The same `key` returns the same new job, if the request is the
    same.
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
    """Make the new job of this wish. With `once`, raise WrongState if the old job was run again before."""
    return await _make(db, job_id, wish, _New(new_id, source, key, request_id, once, priority_max))


async def preview(db: Database, job_id: UUID, wish: Wish) -> Again:
    """Compute what the new job would run, without making it. Raises the same errors as making it."""
    async with db.connection() as connection:
        row = await connection.fetchrow(sql("job_row"), job_id)
        if row is None or row["deleted_at"] is not None:
            raise unknown(job_id)
        plan = await read_plan(connection, row["plan"])
        changed = _changed(row, _inputs(row, plan, wish))
        _check_state(row, wish, plan)
        own = await owned(connection, job_id, JobState(row["state"]), plan) if wish.keeps else Owned()
        old = await _old_rows(connection, "step_states", job_id, plan)
    if not old:
        # The job was removed in the meantime; a job that has ended changes in no other way.
        raise unknown(job_id)
    if not wish.keeps:
        old = _fresh(plan)
    return again(plan, _rows(plan, old, wish, changed, row, own.undone)[0], changed)


async def _make(db: Database, job_id: UUID, wish: Wish, new: _New) -> UUID:
    check_actor(new.source, new.request_id)
    check_text(new.key or "")
    if wish.from_step is not None:
        check_text(wish.from_step)

    async def operation(connection: asyncpg.Connection, gate: Current) -> UUID | Denied:
        async with connection.transaction():
            if await connection.fetchrow(sql("job_row"), new.id) is not None:
                # An earlier commit whose reply was lost made the job; it may be running by now.
                return await refusal_of(connection, new.id) or new.id
            await enter(connection, gate)
            await drafts.lock(connection, [job_id])
            row = await connection.fetchrow(sql("job_row"), job_id)
            if row is None:
                raise unknown(job_id)
            plan = await read_plan(connection, row["plan"])
            submission = _submission(row, plan, wish, new)
            submission.check()
            first = await _made_before(connection, submission)
            if first is not None:
                return await refusal_of(connection, first) or first
            if row["deleted_at"] is not None:
                raise unknown(job_id)
            _check_state(row, wish, plan)
            own = await owned(connection, job_id, JobState(row["state"]), plan) if wish.keeps else Owned()
            [answer] = await insert(connection, [submission], gate)
            if isinstance(answer, Conflict):
                raise answer
            if isinstance(answer, Denied):
                # The denied job is stored, so this transaction must commit. The old job was not run again.
                return answer
            if not answer.is_new:
                # A concurrent request with the same key made the job.
                return answer.job_id
            await _note(connection, row, new)
            await connection.execute(sql("job_budget_again"), job_id, new.id)
            if plan.is_undo:
                await resumed(connection, job_id, new.id)
            if wish.keeps:
                changed = _changed(row, submission.inputs)
                old = await _old_rows(connection, "step_rows", job_id, plan)
                rows, restart = _rows(plan, old, wish, changed, row, own.undone, answer.holds)
                held = submission._replace(holds=answer.holds)
                await _keep(connection, job_id, held, rows, new.source, own, wish.from_step, restart)
        return new.id

    answer = await gated(db, operation)
    if isinstance(answer, Denied):
        raise answer
    return answer


async def _made_before(connection: asyncpg.Connection, submission: Submission) -> UUID | None:
    """Return the job that the same key made. A used key is answered before any other check."""
    if submission.idempotency_key is None:
        return None
    row = await connection.fetchrow(sql("job_by_key"), submission.caller, submission.idempotency_key)
    if row is None:
        return None
    if row["body_hash"] != body_hash(submission, encode(submission.inputs)):
        raise Conflict(
            f"the key was used to run the job again in another way, by job {row['id']}",
            remedy="Use a new key for a new request",
        )
    first: UUID = row["id"]
    return first


async def _note(connection: asyncpg.Connection, row: asyncpg.Record, new: _New) -> None:
    """Record that the job was run again, if it had ended without success."""
    if JobState(row["state"]) not in JOB_TERMINAL - {JobState.COMPLETED}:
        return
    is_first = await connection.fetchval(sql("redriven_put"), row["id"], new.id, new.source)
    if new.once and not is_first:
        raise WrongState(f"job {row['id']} was already run again or discarded", remedy="Look at the list again")


def _check_state(row: asyncpg.Record, wish: Wish, plan: Plan) -> None:
    state = JobState(row["state"])
    if plan.is_undo and wish.action != "retry":
        raise WrongState(f"job {row['id']} undoes another job", remedy="Retry it: it then continues where it failed")
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
    # With a service, every new job is followed, so it needs a correlation id.
    own = str(new.id) if row["is_served"] else None
    return Submission(
        plan=plan,
        inputs=_inputs(row, plan, wish),
        job_id=new.id,
        caller=row["caller"],
        idempotency_key=new.idempotency_key(wish.action, row["id"]),
        labels=None if row["labels"] is None else msgspec.json.decode(row["labels"]),
        priority=row["priority"] if plan.is_undo else min(row["priority"], new.priority_max),
        deadline_s=row["deadline_s"],
        ttl_s=row["ttl_s"],
        correlation_id=new.request_id or row["correlation_id"] or own,
        retry_of=row["id"],
        asked=() if wish.from_step is None else ("from", wish.from_step),
        asker=None if row["asker"] is None else stored_asker(row["caller"], msgspec.json.decode(row["asker"])),
    )


def _fresh(plan: Plan) -> list[Kept]:
    """Return the step rows of a job that has not started."""
    return [Kept(no, no, None, StepState.BLOCKED, 0, None, None, None, None) for no in range(len(plan.nodes))]


async def _old_rows(connection: asyncpg.Connection, name: str, job_id: UUID, plan: Plan) -> list[Kept]:
    """Read the steps of the old job. Nothing is kept of a job whose outputs the new one may not see."""
    rows = await fetch(connection, name, Reader.NEW_JOB, job_id)
    if rows and not is_visible(Content.OUTPUT, Reader.NEW_JOB, JobState(rows[0]["job_state"])):
        return _fresh(plan)
    return [
        Kept(r["no"], r["node"], r["index"], StepState(r["state"]), r["unmet"], r["fan"], r["fanned"], r["item"],
             r["output"])
        for r in rows
    ]  # fmt: skip


def _rows(
    plan: Plan,
    old: list[Kept],
    wish: Wish,
    changed: Sequence[str],
    row: asyncpg.Record,
    undone: frozenset[int],
    holds: Hold = NO_HOLD,
) -> tuple[list[Kept], Restart]:
    """Compute the rows that the new job starts with. Refuses if no step is left to run."""
    restart = restart_from(plan, old, wish.from_step, changed) if wish.from_step is not None else NOTHING
    restart = replace(restart, nodes=restart.nodes | undone) if undone else restart
    rows = retry_rows(plan, old, restart, holds)
    if all(one.state in STEP_DONE for one in rows):
        raise WrongState(f"every step of job {row['id']} is done", remedy="Use rerun to run it again, or a part of it")
    return rows, restart


async def keep(
    connection: asyncpg.Connection, job_id: UUID, submission: Submission, answer: Accepted, source: str
) -> None:
    """Give a job that this transaction made the finished steps of another job of its plan."""
    submission = submission._replace(holds=answer.holds)
    old = await _old_rows(connection, "step_rows", job_id, submission.plan)
    try:
        own = await owned(connection, job_id, JobState.FAILED, submission.plan)
    except WrongState:
        # It is not decided which effects stand, so nothing is kept.
        own = Owned(frozenset(range(len(submission.plan.nodes))))
    rows = retry_rows(submission.plan, old, Restart(own.undone), submission.holds)
    await _keep(connection, job_id, submission, rows, source, own)


async def _keep(
    connection: asyncpg.Connection,
    job_id: UUID,
    submission: Submission,
    new: Sequence[Kept],
    source: str,
    own: Owned,
    from_step: str | None = None,
    restart: Restart = NOTHING,
) -> None:
    new_id, plan = submission.job_id, submission.plan
    static, children = new[: len(plan.nodes)], new[len(plan.nodes) :]
    still_open = sum(row.state not in STEP_DONE for row in new)
    state = first_state([row.state for row in new], submission.holds)
    await connection.execute(sql("retry_job"), new_id, len(new), still_open, state)
    await connection.execute(
        *bound(
            "retry_step",
            job_id=new_id,
            no=[row.no for row in static],
            state=[row.state for row in static],
            unmet=[row.unmet for row in static],
            fan=[row.fan for row in static],
            fanned=[row.fanned for row in static],
            output=[row.output for row in static],
            waiting_for=[row.waiting_for for row in static],
            holds=[int(row.holds) for row in static],
        )
    )
    if children:
        await connection.execute(
            *bound(
                "retry_children",
                job_id=new_id,
                no=[row.no for row in children],
                node=[row.node for row in children],
                index=[row.index for row in children],
                state=[row.state for row in children],
                queue=[plan.nodes[row.node].queue for row in children],
                timeout_s=[plan.nodes[row.node].timeout_s for row in children],
                item=[row.item for row in children],
                output=[row.output for row in children],
                holds=[int(row.holds) for row in children],
            )
        )
    told: dict[str, Any] = {"of": str(job_id), "states": {str(row.no): row.state for row in new}}
    stands = [row.no for row in new if row.state in STEP_DONE and (row.node, row.index) in own.moves]
    if effects := await moved(connection, job_id, new_id, stands):
        told |= {"effects": effects}
    if from_step is not None or own.undone:
        # The child jobs of these steps start afresh too (`child_kin`).
        told |= (
            {"fresh": sorted(restart.nodes)}
            if from_step is None
            else {"from": from_step, "fresh": sorted(restart.nodes)}
        )
    await connection.execute(sql("retry_event"), new_id, source, encode(told), submission.correlation_id)
    queues = {plan.nodes[row.node].queue for row in new if row.state is StepState.QUEUED}
    connection.ring(WorkQueued(tuple(sorted(queues))), RouteDue())
