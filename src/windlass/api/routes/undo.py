"""The undo of a job: look at its plan, and start it."""

from __future__ import annotations

from windlass.api.guard import Caller, Has, JobId, RequestId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.routes.control import noted
from windlass.api.wire.undo import UndoDocument, UndoStarted, undo_document
from windlass.core.caller import Scope
from windlass.engine import undo as engine
from windlass.views.undo import undo_view

router = guarded_router("jobs")


@router.get("/jobs/{job_id}/undo", operation_id="jobs.undo", response_model=UndoDocument, summary="Get a job's undo")
@guard(Scope.JOBS_READ, codes=("not_found",))
async def undo(job_id: JobId, caller: Caller, parts: Has) -> UndoDocument:
    """Returns which effects are undone, in order. Before the job has ended: what a cancel would undo now."""
    job = await owned_job(parts, caller, job_id)
    return undo_document(job, await undo_view(parts.db, job_id))


@router.post(
    "/jobs/{job_id}/undo",
    operation_id="jobs.start_undo",
    status_code=202,
    response_model=UndoStarted,
    summary="Undo a finished job",
)
@guard(Scope.JOBS_WRITE, operation="write", codes=("not_found", "wrong_state"))
async def start_undo(job_id: JobId, caller: Caller, parts: Has, request_id: RequestId) -> UndoStarted:
    """Lets an undo go that waits for a person, or undoes the effects of any finished job that still stand."""
    await noted(parts, caller, job_id, "undo", request_id)
    found = await engine.start(parts.db, job_id, source=caller.caller_id, request_id=request_id)
    return UndoStarted.model_construct(job_id=job_id, undo_job_id=found.undo_job, is_new=found.is_new)
