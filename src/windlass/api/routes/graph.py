"""The inside of a job: its graph, its steps, its events, and the reasons why it does not advance."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from windlass.api.guard import Caller, Has, JobId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.wire.decision import DecisionList
from windlass.api.wire.step import (
    EVENTS_PAGE_MAX,
    NEWEST_EVENTS,
    EventPage,
    EventsQuery,
    GraphDocument,
    GraphQuery,
    Reasons,
    StepPage,
    StepsQuery,
    WhyQuery,
    event_document,
    graph_document,
    reason_document,
    step_document,
)
from windlass.core.caller import Scope
from windlass.core.states import StepState
from windlass.documents.decision import decisions_values
from windlass.views import explain, job_graph, read
from windlass.views.decisions import decisions as decisions_of

router = guarded_router("jobs")


@router.get(
    "/jobs/{job_id}/graph", operation_id="jobs.graph", response_model=GraphDocument, summary="Get a job's graph"
)
@guard(Scope.JOBS_READ, codes=("not_found", "bad_input"))
async def graph(job_id: JobId, query: Annotated[GraphQuery, Query()], caller: Caller, parts: Has) -> Any:
    """Returns every step of the recipe with its state. A fan-out is one node with counts; its children are steps."""
    job = await owned_job(parts, caller, job_id)
    view = await job_graph.graph(parts.db, job, with_results=query.results, with_children=query.children is not None)
    return graph_document(job, view)


@router.get("/jobs/{job_id}/steps", operation_id="jobs.steps", response_model=StepPage, summary="List a job's steps")
@guard(Scope.JOBS_READ, codes=("not_found", "bad_input"))
async def steps(job_id: JobId, query: Annotated[StepsQuery, Query()], caller: Caller, parts: Has) -> Any:
    """Returns the steps in order, including the children of fan-outs."""
    job = await owned_job(parts, caller, job_id)
    plan, found, is_more = await job_graph.steps_page(
        parts.db,
        job,
        step=query.step,
        states=[StepState(name) for name in query.status],
        after=query.after,
        limit=query.limit,
    )
    items = [step_document(job.id, plan, step) for step in found]
    return StepPage.model_construct(items=items, next=found[-1].no if is_more else None)


@router.get(
    "/jobs/{job_id}/events", operation_id="jobs.events", response_model=EventPage, summary="List a job's events"
)
@guard(Scope.JOBS_READ, codes=("not_found", "bad_input"))
async def events(job_id: JobId, query: Annotated[EventsQuery, Query()], caller: Caller, parts: Has) -> Any:
    """Returns every event of the job, in order and without a gap. /jobs/{job_id}/stream sends them as they happen."""
    await owned_job(parts, caller, job_id)
    is_newest_first = query.order == "desc"
    limit = query.limit or (NEWEST_EVENTS if is_newest_first else EVENTS_PAGE_MAX)
    found = await read.events(
        parts.db, job_id, after=query.after, before=query.before, is_newest_first=is_newest_first, limit=limit
    )
    items = [event_document(job_id, event) for event in found]
    return EventPage.model_construct(items=items, next=found[-1].seq if len(found) == limit else None)


@router.get("/jobs/{job_id}/why", operation_id="jobs.why", response_model=Reasons, summary="Explain why a job waits")
@guard(Scope.JOBS_READ, codes=("not_found", "bad_input"))
async def why(job_id: JobId, query: Annotated[WhyQuery, Query()], caller: Caller, parts: Has) -> Reasons:
    """Returns what each unfinished step waits for, read from the same rows that the engine uses."""
    await owned_job(parts, caller, job_id)
    found = await explain.why(parts.db, job_id, query.step, limit=explain.REASONS_MAX + 1)
    items = [reason_document(reason) for reason in found[: explain.REASONS_MAX]]
    return Reasons(items=items, is_more=len(found) > explain.REASONS_MAX)


@router.get(
    "/jobs/{job_id}/decisions",
    operation_id="jobs.decisions",
    response_model=DecisionList,
    summary="List the policy's decisions about a job",
)
@guard(Scope.JOBS_READ, codes=("not_found",))
async def decisions(job_id: JobId, caller: Caller, parts: Has) -> Any:
    """Returns the rule and the policy that let the job go on, and every other verdict with its reason."""
    await owned_job(parts, caller, job_id)
    return DecisionList(**decisions_values(await decisions_of(parts.db, job_id)))
