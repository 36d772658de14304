"""Reading jobs into drafts and writing the drafts back, many in one statement.

A draft is written on the condition that its job is still at the version that was read. `write` raises `MovedOn` when
one is not, and then nothing of the whole batch was written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.bell import Bell, JobsCancelled, JobsEnded, RouteDue, TimerSet, ToldOutput, WorkQueued, told
from windlass.core.draft import Draft, Job, Step
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.outcome import Fault
from windlass.core.plan import Plan
from windlass.core.queue import is_apart
from windlass.core.states import JobState, StepState
from windlass.core.visibility import Content, Reader, is_visible
from windlass.core.wait import Wait
from windlass.store.provider_jobs import write_work
from windlass.store.signals import changes_waits, write_waits
from windlass.store.slots import has_lines, write_lines
from windlass.store.statements import sql

PlanOf = Callable[[str], Awaitable[Plan]]

# When few jobs end at once their submitters are likely waiting, so each one's bell also tells a small output.
_TOLD_MAX = 4
_SOON_S = 5.0

_LAST_EVENTS = ["step.completed", "job.completed"]
_JOB_STATES = {str(state): state for state in JobState}
_STEP_STATES = {str(state): state for state in StepState}


class MovedOn(Exception):
    """A job was changed by someone else between reading and writing it; read it again."""


async def lock(connection: asyncpg.Connection, job_ids: Iterable[UUID]) -> None:
    """Take the jobs' row locks, in the order of their ids."""
    await connection.fetch(sql("draft_lock"), sorted(job_ids))


async def load(connection: asyncpg.Connection, wanted: Mapping[UUID, Iterable[int]], plan_of: PlanOf) -> list[Draft]:
    """The jobs with the steps asked for. A job or step that does not exist is left out."""
    ids: list[UUID] = []
    numbers: list[int] = []
    for job_id, nos in wanted.items():
        before = len(numbers)
        numbers.extend(nos)
        ids.extend([job_id] * (len(numbers) - before))
    return await _drafts(await connection.fetch(sql("draft_load"), ids, numbers), plan_of)


async def load_open(
    connection: asyncpg.Connection, job_id: UUID, states: Iterable[StepState], plan_of: PlanOf
) -> Draft | None:
    """One job with all its steps that are in one of these states."""
    rows = await connection.fetch(sql("draft_load_open"), job_id, list(states))
    found = await _drafts(rows, plan_of)
    return found[0] if found else None


async def _drafts(rows: list[asyncpg.Record], plan_of: PlanOf) -> list[Draft]:
    drafts: dict[UUID, Draft] = {}
    for row in rows:
        draft = drafts.get(row["id"])
        if draft is None:
            draft = drafts[row["id"]] = Draft(_job(row), await plan_of(row["plan"]), {}, row["now"])
        if row["no"] is not None:
            draft.steps[row["no"]] = Step(
                row["no"],
                row["node"],
                row["index"],
                _STEP_STATES[row["state"]],
                row["unmet"],
                row["attempt"],
                row["failures"],
                row["losses"],
                row["fan"],
                row["fanned"],
                Wait.parse(row["waiting_for"]) if row["state"] == "PARKED" else None,
                row["wake_at"],
                worker=row["worker"],
                queue=row["queue"],
                holds=Hold(row["holds"]) if row["holds"] else NO_HOLD,
            )
    return list(drafts.values())


def _job(row: asyncpg.Record) -> Job:
    parent = None
    if row["parent_job"] is not None:
        parent = (row["parent_job"], row["parent_no"], row["parent_attempt"])
    return Job(
        row["id"],
        _JOB_STATES[row["job_state"]],
        row["is_paused"],
        row["version"],
        row["steps_total"],
        row["steps_open"],
        row["steps_failed"],
        None,
        parent,
        row["correlation_id"],
        row["expires_at"],
    )


def is_simple(draft: Draft) -> bool:
    """Whether one statement can write the draft, so that it needs neither lock nor transaction of its own."""
    return not (
        draft.sweep
        or draft.is_prolonged
        or draft.children
        or draft.child_jobs
        or (draft.is_finished and draft.job.parent)
        or has_lines(draft)
        or changes_waits(draft)
    )


async def write(connection: asyncpg.Connection, drafts: Iterable[Draft]) -> None:
    """Write all of it, or raise MovedOn. Drafts that are not simple must be written inside a transaction."""
    changed = [draft for draft in drafts if draft.is_changed]
    if not changed:
        return
    # Rows are locked in this order; two batches that share jobs must not wait for each other.
    changed.sort(key=lambda draft: draft.job.id.bytes)
    try:
        if len(changed) == 1 and (done := _completed(changed[0])) is not None:
            bells = _bells(changed)
            if _is_last(changed[0]):
                values = (*_last_values(changed[0], done), *connection.carried(bells))
                if (await connection.fetchrow(sql("draft_finish"), *values))["is_rung"]:
                    return
            else:
                unmet = [step.unmet for step in changed[0].changed.values() if step is not done]
                values = (*_values(changed[0], done), unmet, done.worker)
                await connection.execute(sql("draft_complete"), *values)
            connection.ring(*bells)
            return
        await connection.execute(
            sql("draft_write"), *_job_columns(changed), *_step_columns(changed), *_event_columns(changed),
            _fence_workers(changed), _twins(changed), _holds(changed),
        )  # fmt: skip
    except asyncpg.PostgresError as error:
        if error.sqlstate == "WL001":
            raise MovedOn from error
        raise
    for draft in changed:
        if draft.is_prolonged:
            await connection.execute(sql("draft_prolong"), draft.job.id, draft.job.expires_at)
        if draft.children:
            await _write_children(connection, draft)
        if draft.sweep:
            await connection.execute(sql("draft_sweep"), draft.job.id, draft.source)
            await connection.execute(sql("inbox_cancel_children"), draft.job.id)
        if draft.is_finished and draft.job.parent is not None:
            parent_job, no, attempt = draft.job.parent
            outcome = encode({"child": str(draft.job.id), "state": draft.job.state})
            await connection.execute(sql("inbox_put"), parent_job, no, attempt, "child", outcome)
    await _write_outside(connection, changed)
    connection.ring(*_bells(changed))


async def _write_outside(connection: asyncpg.Connection, changed: list[Draft]) -> None:
    """The lines, the work of providers and the waits for events that follow from the steps."""
    if lined := [draft for draft in changed if has_lines(draft)]:
        await write_lines(connection, lined)
    if slotted := [draft for draft in lined if draft.plan.is_slotted]:
        await write_work(connection, slotted)
    if waiting := [draft for draft in changed if changes_waits(draft)]:
        await write_waits(connection, waiting)


def _completed(draft: Draft) -> Step | None:
    """The step whose completion is the draft's only news, apart from the state and `unmet` of other steps.

    Those are the steps that became ready, and a fan-out that the router still adds children to.
    """
    if (
        draft.fences is None
        or len(draft.fences) > 1
        or draft.sweep
        or any(event.payload or event.idempotency_key for event in draft.events)
    ):
        return None
    (no,) = draft.fences
    after = (step for step in draft.changed.values() if step.no != no)
    is_plain = draft.steps[no].state is StepState.COMPLETED and all(
        step.state in (StepState.QUEUED, StepState.READY) for step in after
    )
    return draft.steps[no] if is_plain else None


def _is_last(draft: Draft) -> bool:
    """Whether the step's completion completed the job, and nothing else happened."""
    return draft.job.state is JobState.COMPLETED and [event.type for event in draft.events] == _LAST_EVENTS


def _last_values(draft: Draft, done: Step) -> tuple[Any, ...]:
    """The parameters of `draft_finish`, but for the bells."""
    job = draft.job
    return (job.id, job.version, done.no, done.attempt, done.output, draft.source, job.correlation_id, done.worker)


def _values(draft: Draft, done: Step) -> tuple[Any, ...]:
    """The parameters of `draft_complete`, but for the last two."""
    after = [step for step in draft.changed.values() if step is not done]
    return (
        draft.job.id,
        draft.job.version,
        draft.job.state if draft.is_moved else None,
        draft.job.steps_open,
        done.no,
        done.attempt,
        done.output,
        [step.no for step in after],
        [step.state for step in after],
        [event.type for event in draft.events],
        [event.no for event in draft.events],
        [event.attempt for event in draft.events],
        draft.source,
        draft.job.correlation_id,
    )


def _job_columns(drafts: list[Draft]) -> tuple[list[Any], ...]:
    jobs = [draft.job for draft in drafts]
    return (
        [job.id for job in jobs],
        uniform([job.version for job in jobs]),
        uniform([len(draft.events) for draft in drafts]),
        uniform([draft.job.state if draft.is_moved else "" for draft in drafts]),
        uniform([job.is_paused for job in jobs]),
        uniform([job.steps_total for job in jobs]),
        uniform([job.steps_open for job in jobs]),
        uniform([job.steps_failed for job in jobs]),
        sparse([encode_fault(job.error) for job in jobs]),
    )


def _step_columns(drafts: list[Draft]) -> tuple[list[Any] | None, ...]:
    steps: list[Step] = []
    ids: list[UUID] = []
    for draft in drafts:
        steps.extend(draft.changed.values())
        ids.extend([draft.job.id] * len(draft.changed))
    return (
        None if len(ids) == len(drafts) and all(draft.changed for draft in drafts) else ids,
        uniform([step.no for step in steps]),
        uniform([step.state for step in steps]),
        uniform([step.unmet for step in steps]),
        uniform([step.attempt for step in steps]),
        uniform([step.failures for step in steps]),
        uniform([step.losses for step in steps]),
        sparse([step.fan for step in steps]),
        sparse([step.fanned for step in steps]),
        sparse([step.waiting_for for step in steps]),
        sparse([step.wake_at for step in steps]),
        sparse([step.output for step in steps]),
        sparse([encode_fault(step.error) for step in steps]),
        uniform([draft.fences.get(no, 0) if draft.fences else 0 for draft in drafts for no in draft.changed]),
    )


def _fence_workers(drafts: list[Draft]) -> list[UUID | None]:
    """The workers of the fences of `_step_columns`, in the same order; a worker once if there is no other."""
    column = [
        step.worker if draft.fences and no in draft.fences else None
        for draft in drafts
        for no, step in draft.changed.items()
    ]
    workers = {worker for worker in column if worker is not None}
    return column if len(workers) > 1 else [*workers]


def _twins(drafts: list[Draft]) -> list[str | None]:
    """The queues of the steps that wait apart, beside the step columns; any other step stays where it is."""
    return sparse(
        [
            step.queue if step.queue is not None and is_apart(step.queue) else None
            for draft in drafts
            for step in draft.changed.values()
        ]
    )


def _holds(drafts: list[Draft]) -> list[int | None]:
    """The holds of the steps that are held, beside the step columns; any other step has none."""
    return sparse([int(step.holds) or None for draft in drafts for step in draft.changed.values()])


def _event_columns(drafts: list[Draft]) -> tuple[list[Any], ...]:
    events = drafts[0].events
    # The statement takes the correlation ids of such events from the jobs' rows.
    if all(draft.events == events and draft.correlation_id is None for draft in drafts):
        return (
            [],
            [],
            [event.type for event in events],
            uniform([event.source for event in events]),
            [event.no for event in events],
            [event.attempt for event in events],
            sparse([None if event.payload is None else encode(event.payload) for event in events]),
            [],
            sparse([event.idempotency_key for event in events]),
        )
    rows = [
        (
            place,
            i,
            event.type,
            event.source,
            event.no,
            event.attempt,
            None if event.payload is None else encode(event.payload),
            draft.correlation_id or draft.job.correlation_id,
            event.idempotency_key,
        )
        for place, draft in enumerate(drafts, 1)
        for i, event in enumerate(draft.events, 1)
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    columns[3] = uniform(columns[3])
    return (*columns[:6], *map(sparse, columns[6:]))


def _bells(drafts: list[Draft]) -> list[Bell]:
    bells: list[Bell] = []
    queues = sorted({queue for draft in drafts for queue in draft.queues})
    if queues:
        bells.append(WorkQueued(tuple(queues)))
    if any(draft.has_ready or draft.sweep or (draft.is_finished and draft.job.parent) for draft in drafts):
        bells.append(RouteDue())
    if any(_is_soon(draft.wakes_at, draft.now) for draft in drafts):
        bells.append(TimerSet())
    bells.extend(_done([draft for draft in drafts if draft.is_finished]))
    if swept := [draft.job.id for draft in drafts if draft.sweep]:
        bells.append(JobsCancelled(tuple(swept)))
    return bells


def _done(ended: list[Draft]) -> list[Bell]:
    if len(ended) > _TOLD_MAX:
        return [JobsEnded(tuple(draft.job.id for draft in ended))]
    return [JobsEnded((draft.job.id,), _told(draft)) for draft in ended]


def _told(draft: Draft) -> ToldOutput | None:
    """The output of the one step that completed the job; the hearer decides whether that is enough."""
    outputs = [step for step in draft.changed.values() if step.state is StepState.COMPLETED and step.output]
    if len(outputs) != 1 or not is_visible(Content.OUTPUT, Reader.BELL, draft.job.state, outputs[0].state):
        return None
    return told(outputs[0].no, outputs[0].output or "")


def sparse(column: list[Any]) -> list[Any]:
    """The column, or an empty one if it holds nothing: `unnest` fills up with NULL, and empty costs nothing to send."""
    is_empty = not column or (column[0] is None and column.count(None) == len(column))
    return [] if is_empty else column


def uniform(column: list[Any]) -> list[Any]:
    """The column, or its value once if it is the same throughout; for columns that can hold no NULL (see the SQL)."""
    return column[:1] if column and column.count(column[0]) == len(column) else column


def _is_soon(wakes_at: datetime | None, now: datetime) -> bool:
    return wakes_at is not None and (wakes_at - now).total_seconds() < _SOON_S


async def _write_children(connection: asyncpg.Connection, draft: Draft) -> None:
    for fan_no, added in (draft.children or {}).items():
        node = draft.plan.nodes[draft.steps[fan_no].node]
        await connection.execute(
            sql("draft_children"),
            draft.job.id,
            fan_no,
            added[0].state,
            node.queue,
            node.timeout_s,
            [child.no for child in added],
            [child.index for child in added],
            [child.item for child in added],
        )


def encode(value: Any) -> str:
    """JSON text."""
    return msgspec.json.encode(value).decode()


def encode_fault(fault: Fault | None) -> str | None:
    """A fault as JSON text."""
    return None if fault is None else encode(fault.as_json())
