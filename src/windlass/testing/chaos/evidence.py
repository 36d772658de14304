"""The evidence of a run: every job with its steps, events and output, the workers, and the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from windlass.app.windlass import Windlass
from windlass.core.errors import WindlassError
from windlass.core.plan import Plan
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.plans import plan_of
from windlass.testing.chaos.journal import Line, read_journal
from windlass.testing.chaos.reckoning import OutsideEvidence, count_open, gather_outside
from windlass.testing.checker import Tables
from windlass.testing.fake_provider import Entry
from windlass.testing.history import history
from windlass.views import explain, read, workers
from windlass.views.workers import WorkerView

OPEN = tuple(state for state in JobState if state not in JOB_TERMINAL)


@dataclass(frozen=True, slots=True)
class JobHistory:
    """A job as the database holds it; steps and events in order."""

    view: read.JobView
    plan: Plan
    steps: Sequence[read.StepView]
    events: Sequence[read.EventView]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence. `outputs` holds the outputs of completed jobs; for an unreadable output, it holds the error."""

    tables: Tables
    jobs: Mapping[UUID, JobHistory]
    outputs: Mapping[UUID, Any]
    workers: Sequence[WorkerView]
    journal: Sequence[Line]
    outside: OutsideEvidence = field(default_factory=OutsideEvidence)


async def gather(windlass: Windlass, journal: Path, entries: Sequence[Entry] = ()) -> Evidence:
    """Read everything."""
    jobs: dict[UUID, JobHistory] = {}
    outputs: dict[UUID, Any] = {}
    before: UUID | None = None
    while page := await read.jobs(windlass.db, before=before, limit=read.PAGE_MAX, with_deleted=True):
        before = page[-1].id
        for view in page:
            jobs[view.id] = await job_history(windlass, view.id)
            if view.state is JobState.COMPLETED:
                outputs[view.id] = await _output(windlass, view.id)
    async with windlass.db.connection() as connection:
        tables = await Tables.read(connection)
        outside = await gather_outside(connection, entries)
    return Evidence(tables, jobs, outputs, await workers.listing(windlass.db), read_journal(journal), outside)


async def job_history(windlass: Windlass, job_id: UUID) -> JobHistory:
    """Read one job in its current state."""
    db = windlass.db
    view = await read.job(db, job_id)
    events: list[read.EventView] = []
    while page := await read.events(db, job_id, after=events[-1].seq if events else 0):
        events += page
    return JobHistory(view, await plan_of(db, view.plan), await read.steps(db, job_id), events)


async def _output(windlass: Windlass, job_id: UUID) -> Any:
    try:
        return await read.result(windlass.db, windlass.artifacts, shared_evaluator(), job_id)
    except WindlassError as error:
        return error


async def still_open(windlass: Windlass) -> list[read.JobView]:
    """Return at most a page of the jobs that have not ended."""
    return await read.jobs(windlass.db, states=OPEN, limit=read.PAGE_MAX)


async def is_open_outside(windlass: Windlass) -> bool:
    """Tell whether providers still work for a job, or a provider event is not applied yet."""
    async with windlass.db.connection() as connection:
        return await count_open(connection) > 0


async def dump(windlass: Windlass, job_id: UUID) -> str:
    """Return a job's history as text, with what its open steps wait for."""
    found = await job_history(windlass, job_id)
    return history(found.view, found.plan, found.steps, found.events, await explain.why(windlass.db, job_id))
