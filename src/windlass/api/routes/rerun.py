"""Runs a job again as a new job: from its failure, from the start, or from a step."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.responses import Response

from windlass.api.guard import Caller, Has, JobId, RequestId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.parts import Parts
from windlass.api.routes.jobs import IdempotencyKey, accepted_answer
from windlass.api.submission import checked_key
from windlass.api.wire.control import RerunPlan, RerunRequest, RetryRequest, rerun_plan
from windlass.api.wire.job import JobAccepted
from windlass.core.caller import CallerContext, Scope, priority_max
from windlass.engine import rerun as engine
from windlass.pure.audit import AuditEvent

router = guarded_router("jobs")
_CODES = ("not_found", "wrong_state", "conflict", "bad_input", "too_large", "bad_media", "busy")
_ROUTE: dict[str, Any] = {
    "status_code": 202,
    "response_model": JobAccepted,
    "responses": {200: {"model": RerunPlan, "description": "A dry run: what would run again, and what is kept."}},
}


@router.post("/jobs/{job_id}/retry", operation_id="jobs.retry", summary="Retry a failed job", **_ROUTE)
@guard(Scope.JOBS_WRITE, operation="write", by_depth=True, codes=_CODES)
async def retry(
    job_id: JobId,
    caller: Caller,
    parts: Has,
    request_id: RequestId,
    wish: RetryRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Creates a job that keeps every succeeded step and runs the rest. With `dry_run` it only lists them."""
    asked = engine.Wish("retry")
    is_dry = wish is not None and wish.dry_run
    return await _answer(parts, caller, job_id, asked, checked_key(idempotency_key), request_id, is_dry=is_dry)


@router.post("/jobs/{job_id}/rerun", operation_id="jobs.rerun", summary="Run a job again", **_ROUTE)
@guard(Scope.JOBS_WRITE, operation="write", by_depth=True, codes=_CODES)
async def rerun(
    job_id: JobId,
    caller: Caller,
    parts: Has,
    request_id: RequestId,
    wish: RerunRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Creates a job of the same plan: from the start, or from `from_step` on, keeping the other finished steps.

    `inputs`, if given, replace the job's inputs; kept steps keep their outputs. With `dry_run` no job is created.
    Without an `Idempotency-Key`, a repeated request creates a second job.
    """
    asked = engine.Wish("rerun") if wish is None else engine.Wish("rerun", wish.from_step, wish.inputs)
    is_dry = wish is not None and wish.dry_run
    return await _answer(parts, caller, job_id, asked, checked_key(idempotency_key), request_id, is_dry=is_dry)


async def _answer(
    parts: Parts,
    caller: CallerContext,
    job_id: UUID,
    wish: engine.Wish,
    key: str | None,
    request_id: str,
    *,
    is_dry: bool,
) -> Response:
    await owned_job(parts, caller, job_id)
    if is_dry:
        told = rerun_plan(await engine.preview(parts.db, job_id, wish))
        return Response(told.model_dump_json(), media_type="application/json")
    more = {"from_step": wish.from_step, "inputs": "edited" if wish.inputs is not None else None}
    noted = {name: value for name, value in more.items() if value is not None}
    await parts.audit.note(
        None, AuditEvent.JOB_CONTROLLED, caller, job_id=job_id, request_id=request_id, action=wish.action, **noted
    )
    new_id = parts.ids.new()
    made = await engine.make(
        parts.db,
        job_id,
        wish,
        new_id,
        source=caller.caller_id,
        key=key,
        request_id=request_id,
        priority_max=priority_max(caller, parts.settings.priority_max),
    )
    return await accepted_answer(parts, made, is_new=made == new_id)
