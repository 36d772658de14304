"""One step in full, and the attempts of a job."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from windlass.api.guard import Caller, Has, JobId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.routes.results import StepNo
from windlass.api.wire.detail import (
    AttemptPage,
    AttemptsQuery,
    StepDetailDocument,
    attempt_document,
    detail_document,
)
from windlass.core.caller import Scope
from windlass.store.plans import plan_of
from windlass.views import attempts as engine
from windlass.views import step_detail

router = guarded_router("jobs")


@router.get(
    "/jobs/{job_id}/steps/{no}", operation_id="jobs.step", response_model=StepDetailDocument, summary="Get a step"
)
@guard(Scope.JOBS_READ, codes=("not_found",))
async def step(job_id: JobId, no: StepNo, caller: Caller, parts: Has) -> Any:
    """Returns the step's state, attempts, logs, inputs, waits and cost."""
    job = await owned_job(parts, caller, job_id)
    return detail_document(job_id, await step_detail.step(parts.db, parts.resolver, job, no))


@router.get(
    "/jobs/{job_id}/attempts", operation_id="jobs.attempts", response_model=AttemptPage, summary="List a job's attempts"
)
@guard(Scope.JOBS_READ, codes=("not_found", "bad_input"))
async def attempts(job_id: JobId, query: Annotated[AttemptsQuery, Query()], caller: Caller, parts: Has) -> Any:
    """Returns every attempt of every step in the order of their starts: its times, its worker and how it ended."""
    job = await owned_job(parts, caller, job_id)
    found = await engine.attempts(parts.db, job_id, after=query.after, limit=query.limit)
    plan = await plan_of(parts.db, job.plan)
    items = [attempt_document(plan, one) for one in found]
    return AttemptPage.model_construct(items=items, next=found[-1].seq if len(found) == query.limit else None)
