"""Actions of callers on jobs: cancel, pause, resume. `routes/rerun.py` runs a job again."""

from __future__ import annotations

from uuid import UUID

from windlass.api.guard import Caller, Has, JobId, RequestId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.parts import Parts
from windlass.api.wire.control import CancelRequest
from windlass.api.wire.job import JobChanged, job_values
from windlass.core.caller import CallerContext, Scope
from windlass.engine import control
from windlass.pure.audit import AuditEvent
from windlass.views import read

router = guarded_router("jobs")
_CODES = ("not_found", "wrong_state")


@router.post("/jobs/{job_id}/cancel", operation_id="jobs.cancel", response_model=JobChanged, summary="Cancel a job")
@guard(Scope.JOBS_WRITE, operation="write", codes=(*_CODES, "bad_input", "too_large", "bad_media"))
async def cancel(
    job_id: JobId, caller: Caller, parts: Has, request_id: RequestId, wish: CancelRequest | None = None
) -> JobChanged:
    """Ends the job now and refuses later reports of its steps. A finished job stays as it is: `changed` is false."""
    await noted(parts, caller, job_id, "cancel", request_id)
    reason = "" if wish is None else wish.reason
    undo = wish is None or wish.undo
    changed = await control.cancel(
        parts.db, job_id, reason=reason, source=caller.caller_id, request_id=request_id, undo=undo
    )
    return await _changed(parts, job_id, changed)


@router.post("/jobs/{job_id}/pause", operation_id="jobs.pause", response_model=JobChanged, summary="Pause a job")
@guard(Scope.JOBS_WRITE, operation="write", codes=_CODES)
async def pause(job_id: JobId, caller: Caller, parts: Has, request_id: RequestId) -> JobChanged:
    """No further step starts. Running steps go on."""
    await noted(parts, caller, job_id, "pause", request_id)
    changed = await control.pause(parts.db, job_id, source=caller.caller_id, request_id=request_id)
    return await _changed(parts, job_id, changed)


@router.post("/jobs/{job_id}/resume", operation_id="jobs.resume", response_model=JobChanged, summary="Resume a job")
@guard(Scope.JOBS_WRITE, operation="write", codes=_CODES)
async def resume(job_id: JobId, caller: Caller, parts: Has, request_id: RequestId) -> JobChanged:
    """Ends a pause."""
    await noted(parts, caller, job_id, "resume", request_id)
    changed = await control.resume(parts.db, job_id, source=caller.caller_id, request_id=request_id)
    return await _changed(parts, job_id, changed)


async def noted(parts: Parts, caller: CallerContext, job_id: UUID, action: str, request_id: str) -> None:
    """Check that the caller owns the job, and audit the action before it happens, so that no action goes unrecorded."""
    await owned_job(parts, caller, job_id)
    await parts.audit.note(None, AuditEvent.JOB_CONTROLLED, caller, job_id=job_id, request_id=request_id, action=action)


async def _changed(parts: Parts, job_id: UUID, changed: bool) -> JobChanged:
    return JobChanged.model_construct(**job_values(await read.job(parts.db, job_id)), changed=changed)
