"""Reads jobs into drafts and writes the drafts back, many in one statement.

A draft is written only if its job still has the version that was read. Otherwise `write` raises `MovedOn`, and nothing
of the batch is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.bell import Bell, JobsCancelled, JobsEnded, RouteDue, TimerSet, ToldOutput, WorkQueued, told
from windlass.core.draft import Draft, Job, Step
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.plan import Plan
from windlass.core.states import JobState, StepState
from windlass.core.visibility import Content, Reader, is_visible
from windlass.core.wait import Wait
from windlass.store.columns import encode, encode_fault, sparse, uniform
from windlass.store.statements import ordered, sql
from windlass.store.writers import write_touched

PlanOf = Callable[[str], Awaitable[Plan]]

# If few jobs end at once, their submitters probably wait, so each job's bell also carries a small output.
_TOLD_MAX = 4
_SOON_S = 5.0

# The order in which the code below builds the values of each statement.
_WRITE = (
    "jobs", "versions", "event_counts", "job_states", "paused", "totals", "opens", "failed", "job_errors",
    "step_jobs", "nos", "states", "unmets", "attempts", "failures", "losses", "fans", "fanned", "waits", "wake_ats",
    "outputs", "errors", "fences", "fence_workers", "queues", "holds",
    "places", "orders", "types", "sources", "event_nos", "event_attempts", "payloads", "correlation_ids", "keys",
)  # fmt: skip
_COMPLETE = (
    "job", "version", "job_state", "steps_open", "no", "attempt", "output", "after_nos", "after_states", "types",
    "event_nos", "event_attempts", "source", "correlation_id", "after_unmets", "worker",
)  # fmt: skip
_FINISH = (
    "job", "version", "no", "attempt", "output", "source", "correlation_id", "worker", "channels", "payloads",
)  # fmt: skip
_LAST_EVENTS = ["step.completed", "job.completed"]
_JOB_STATES = {str(state): state for state in JobState}
_STEP_STATES = {str(state): state for state in StepState}


class MovedOn(Exception):
    """Another transaction changed a job after it was read; read it again."""


async def lock(connection: asyncpg.Connection, job_ids: Iterable[UUID]) -> None:
    """Lock the jobs' rows in the order of their ids."""
    await connection.fetch(sql("draft_lock"), sorted(job_ids))


async def load(connection: asyncpg.Connection, wanted: Mapping[UUID, Iterable[int]], plan_of: PlanOf) -> list[Draft]:
    """Load jobs with the given steps. Missing jobs and steps are left out."""
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
    """Load one job with all its steps in these states."""
    found = await load_open_many(connection, [job_id], states, plan_of)
    return found[0] if found else None


async def load_open_many(
    connection: asyncpg.Connection, job_ids: Iterable[UUID], states: Iterable[StepState], plan_of: PlanOf
) -> list[Draft]:
    """Load jobs with all their steps in these states."""
    rows = await connection.fetch(sql("draft_load_open"), list(job_ids), list(states))
    return await _drafts(rows, plan_of)


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
        row["failure_code"],
        row["attempts_max"],
    )


async def write(connection: asyncpg.Connection, drafts: Iterable[Draft]) -> None:
    """Write all drafts, or raise MovedOn. Drafts that a writer touches must be written inside a transaction.

    A draft with effects only leaves its job unchanged: it charges late work of a provider, and changes no step.
    """
    # Rows are locked in this order, so that two batches with shared jobs cannot deadlock.
    found = sorted((draft for draft in drafts if draft.events or draft.effects), key=lambda draft: draft.job.id.bytes)
    changed = [draft for draft in found if draft.is_changed]
    try:
        if len(found) == 1 and changed and (done := _completed(changed[0])) is not None:
            await _write_one(connection, changed[0], done)
            return
        if changed:
            values = (*_job_columns(changed), *_step_columns(changed), *_event_columns(changed))
            await connection.execute(sql("draft_write"), *ordered("draft_write", _WRITE)(values))
    except asyncpg.PostgresError as error:
        if error.sqlstate == "WL001":
            raise MovedOn from error
        raise
    await write_touched(connection, found)
    connection.ring(*_bells(changed))


async def _write_one(connection: asyncpg.Connection, draft: Draft, done: Step) -> None:
    """Write one job with one completed step, by a specialised statement."""
    bells = _bells([draft])
    if _is_last(draft):
        values = (*_last_values(draft, done), *connection.carried(bells))
        if (await connection.fetchrow(sql("draft_finish"), *ordered("draft_finish", _FINISH)(values)))["is_rung"]:
            return
    else:
        await connection.execute(sql("draft_complete"), *ordered("draft_complete", _COMPLETE)(_values(draft, done)))
    connection.ring(*bells)


def _completed(draft: Draft) -> Step | None:
    """Return the step whose completion is the draft's only change, apart from the state and `unmet` of other steps.

    The other steps became ready, or are a fan-out that still gets children from the router.
    """
    if (
        draft.fences is None
        or len(draft.fences) > 1
        or draft.effects
        or any(event.payload or event.idempotency_key for event in draft.events)
    ):
        return None
    (no,) = draft.fences
    after = (step for step in draft.changed.values() if step.no != no)
    is_plain = draft.steps[no].state is StepState.COMPLETED and all(
        step.state in (StepState.QUEUED, StepState.READY) and not step.is_requeued for step in after
    )
    return draft.steps[no] if is_plain else None


def _is_last(draft: Draft) -> bool:
    """Return whether the step's completion completed the job, without further events."""
    return draft.job.state is JobState.COMPLETED and [event.type for event in draft.events] == _LAST_EVENTS


def _last_values(draft: Draft, done: Step) -> tuple[Any, ...]:
    """Return the parameters of `draft_finish`, without the bells."""
    job = draft.job
    return (job.id, job.version, done.no, done.attempt, done.output, draft.source, job.correlation_id, done.worker)


def _values(draft: Draft, done: Step) -> tuple[Any, ...]:
    """Return the parameters of `draft_complete`."""
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
        [step.unmet for step in after],
        done.worker,
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
        _fence_workers(drafts),
        # The column has values only for requeued steps; `holds` only for held steps.
        sparse([step.queue if step.is_requeued else None for step in steps]),
        sparse([int(step.holds) or None for step in steps]),
    )


def _fence_workers(drafts: list[Draft]) -> list[UUID | None]:
    """Return the workers of the fences, in the order of `_step_columns`; a single worker only once."""
    column = [
        step.worker if draft.fences and no in draft.fences else None
        for draft in drafts
        for no, step in draft.changed.items()
    ]
    workers = {worker for worker in column if worker is not None}
    return column if len(workers) > 1 else [*workers]


def _event_columns(drafts: list[Draft]) -> tuple[list[Any], ...]:
    events = drafts[0].events
    # If all drafts have the same events, the statement takes the correlation ids from the jobs' rows.
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
    if any(draft.has_ready or draft.is_swept or (draft.is_finished and draft.job.parent) for draft in drafts):
        bells.append(RouteDue())
    if any(_is_soon(draft.wakes_at, draft.now) for draft in drafts):
        bells.append(TimerSet())
    bells.extend(_done([draft for draft in drafts if draft.is_finished]))
    if swept := [draft.job.id for draft in drafts if draft.is_swept]:
        bells.append(JobsCancelled(tuple(swept)))
    return bells


def _done(ended: list[Draft]) -> list[Bell]:
    if len(ended) > _TOLD_MAX:
        return [JobsEnded(tuple(draft.job.id for draft in ended))]
    return [JobsEnded((draft.job.id,), _told(draft)) for draft in ended]


def _told(draft: Draft) -> ToldOutput | None:
    """Return the output of the only step that this draft completed. The listener decides whether it is enough."""
    outputs = [step for step in draft.changed.values() if step.state is StepState.COMPLETED and step.output]
    if len(outputs) != 1 or not is_visible(Content.OUTPUT, Reader.BELL, draft.job.state, outputs[0].state):
        return None
    return told(outputs[0].no, outputs[0].output or "")


def _is_soon(wakes_at: datetime | None, now: datetime) -> bool:
    return wakes_at is not None and (wakes_at - now).total_seconds() < _SOON_S
