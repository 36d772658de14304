"""The demo, in `windlass up` only: run the demo job again, and kill the worker that runs it."""

from __future__ import annotations

from starlette.responses import Response

from windlass.api.guard import Caller, Has, RequestId, guard, guarded_router
from windlass.api.parts import Demo, Parts
from windlass.api.routes.jobs import accepted_answer
from windlass.api.submission import submission_of
from windlass.api.wire.demo import KilledWorker
from windlass.api.wire.job import JobAccepted, JobRequest
from windlass.core.caller import Scope
from windlass.core.errors import NotFound
from windlass.pure.audit import AuditEvent

router = guarded_router("console")


def _demo(parts: Parts) -> Demo:
    if parts.demo is None:
        raise NotFound(
            "there is no demo here", remedy="`windlass up` runs the demo, unless it was started with --no-demo"
        )
    return parts.demo


@router.post(
    "/console/demo/kill-worker",
    operation_id="demo.kill_worker",
    response_model=KilledWorker,
    summary="Kill the demo's worker",
)
@guard(Scope.ADMIN, operation="write", codes=("not_found", "wrong_state"))
async def kill_worker(caller: Caller, parts: Has, request_id: RequestId) -> KilledWorker:
    """Sends a real SIGKILL. The worker's steps are released at once, and continue in the worker that replaces it."""
    demo = _demo(parts)
    # Audited first, so that no kill goes unrecorded.
    await parts.audit.note(None, AuditEvent.DEMO_WORKER_KILLED, caller, request_id=request_id)
    worker, pid = await demo.kill()
    return KilledWorker(worker=worker, pid=pid)


@router.post(
    "/console/demo/run",
    operation_id="demo.run",
    status_code=202,
    response_model=JobAccepted,
    summary="Run the demo again",
)
@guard(Scope.ADMIN, operation="write", by_depth=True, codes=("not_found", "busy"))
async def run(caller: Caller, parts: Has, request_id: RequestId) -> Response:
    """Submits another job like the first job of `windlass up`."""
    demo = _demo(parts)
    wish = JobRequest(recipe=demo.recipe, labels={"windlass": "demo"})
    submission, _ = await submission_of(parts, caller, wish, key=None, request_id=request_id)
    accepted = await parts.submitter.submit(submission)
    demo.job_id = accepted.job_id
    return await accepted_answer(parts, accepted.job_id, is_new=True)
