"""Jobs: submit one or many, list them, look at one, remove it."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from windlass.api.guard import Caller, Has, JobId, RequestId, guard, guarded_router
from windlass.api.own import owned_job
from windlass.api.submission import checked_key, submission_of
from windlass.api.wire.job import JobAccepted, JobDocument, JobRequest, job_document, job_values
from windlass.core.caller import Scope
from windlass.engine import read

router = guarded_router("jobs")
IdempotencyKey = Annotated[
    str | None,
    Header(description="Makes the request safe to repeat: the same key gives the same job.", max_length=255),
]


@router.post("/jobs", operation_id="jobs.submit", status_code=202, response_model=JobAccepted, summary="Submit a job")
@guard(
    Scope.JOBS_WRITE,
    operation="write",
    by_depth=True,
    codes=("not_found", "bad_input", "conflict", "too_large", "bad_media", "bad_url", "busy"),
)
async def submit(
    wish: JobRequest,
    caller: Caller,
    parts: Has,
    request_id: RequestId,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Answered once the job is stored, so whoever has the answer has the job, whatever dies afterwards.

    With an `Idempotency-Key` the request can be repeated after a lost answer: it gives the job that the first one made,
    as it is now, with `Idempotency-Replayed: true`.
    """
    key = checked_key(idempotency_key, wish.idempotency_key)
    accepted = await parts.submitter.submit(await submission_of(parts, caller, wish, key=key, request_id=request_id))
    job = await read.job(parts.db, accepted.job_id)
    document = JobAccepted.model_construct(**job_values(job), is_new=accepted.is_new)
    return accepted_answer(document)


def accepted_answer(document: JobAccepted) -> Response:
    """202, where the job is, and whether it was there before."""
    headers = {"Location": document.links["self"]}
    if not document.is_new:
        headers["Idempotency-Replayed"] = "true"
    return Response(document.model_dump_json(), status_code=202, media_type="application/json", headers=headers)


@router.get("/jobs/{job_id}", operation_id="jobs.get", response_model=JobDocument, summary="Look at a job")
@guard(Scope.JOBS_READ, codes=("not_found",))
async def get(
    job_id: JobId, caller: Caller, parts: Has, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """The job without its payloads: `links` leads to those."""
    body = job_document(await owned_job(parts, caller, job_id)).model_dump_json()
    tag = f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'
    if if_none_match is not None and tag in if_none_match:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, media_type="application/json", headers={"ETag": tag})
