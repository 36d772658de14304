"""Jobs: submit one or many, list them, look at one, remove it."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import asyncpg
from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response

from windlass.api.answer import JsonAnswer
from windlass.api.guard import Caller, Has, JobId, RequestId, charge, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.parts import Parts
from windlass.api.problem import problem_of
from windlass.api.submission import checked_key, checked_many, new_job, submission_of
from windlass.api.tagged import tagged
from windlass.api.wire.job import (
    BATCH_MAX,
    Accepted,
    BatchAccepted,
    BatchRequest,
    JobAccepted,
    JobDocument,
    JobPage,
    JobRequest,
    job_document,
    job_json,
    listed_job,
)
from windlass.api.wire.listing import JobsQuery
from windlass.core.caller import Scope
from windlass.core.errors import BadRequest, Conflict, Denied, TooLarge
from windlass.engine import control
from windlass.pure.audit import AuditEvent
from windlass.pure.cursor import decode_page, encode_page
from windlass.telemetry.traces import link_job
from windlass.views import listing
from windlass.views.read import JobView

router = guarded_router("jobs")
IdempotencyKey = Annotated[
    str | None, Header(description="Makes the request safe to repeat: the same key gives the same job.")
]
IfNoneMatch = Annotated[str | None, Header(description="The known ETag.")]
_SUBMIT_CODES = (
    "not_found", "safety_denied", "bad_input", "conflict", "too_large", "bad_media", "bad_url", "busy", "unavailable"
)  # fmt: skip
_PAGE = "jobs"


@router.post(
    "/jobs/batch",
    operation_id="jobs.submit_batch",
    status_code=202,
    response_model=BatchAccepted,
    summary="Submit many jobs",
)
@guard(Scope.JOBS_WRITE, operation="write", cost=0, by_depth=True, codes=_SUBMIT_CODES)
async def submit_batch(
    batch: BatchRequest,
    request: Request,
    caller: Caller,
    parts: Has,
    request_id: RequestId,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Returns a result for each job, in order.

    An invalid job refuses the whole batch before any job is created. But an idempotency key that was used with another
    body refuses only its own job, and so does a refusal of the policy. A batch costs as much as its jobs.
    """
    if idempotency_key is not None:
        raise BadRequest(
            "one Idempotency-Key cannot identify the jobs of a batch", remedy="Give each job its own idempotency_key"
        )
    if len(batch.jobs) > BATCH_MAX:
        raise TooLarge(f"{len(batch.jobs):,} jobs in a batch; at most {BATCH_MAX:,} are taken")
    await charge(request, len(batch.jobs))
    submissions = await checked_many(parts, caller, batch.jobs, request_id=request_id)
    answers = await parts.submitter.submit_each(submissions)
    for answer in answers:
        if isinstance(answer, Denied):
            link_job(UUID(answer.job_id))
        elif not isinstance(answer, Conflict):
            link_job(answer.job_id)
    items = [
        problem_of(answer, instance=f"/jobs/batch#/jobs/{place}", request_id=request_id)
        if isinstance(answer, Conflict | Denied)
        else Accepted(job_id=answer.job_id, is_new=answer.is_new)
        for place, answer in enumerate(answers)
    ]
    refused = sum(isinstance(answer, Conflict | Denied) for answer in answers)
    document = BatchAccepted(items=items, accepted=len(items) - refused, refused=refused)
    return Response(document.model_dump_json(), status_code=202, media_type="application/json")


@router.post("/jobs", operation_id="jobs.submit", status_code=202, response_model=JobAccepted, summary="Submit a job")
@guard(Scope.JOBS_WRITE, operation="write", by_depth=True, codes=_SUBMIT_CODES)
async def submit(
    wish: JobRequest, caller: Caller, parts: Has, request_id: RequestId, idempotency_key: IdempotencyKey = None
) -> Response:
    """Answers after the job is stored: the job then survives a crash of any process.

    A client can repeat a request with an `Idempotency-Key` after a lost response. It then gets the job of the first
    request, in its current state, with `Idempotency-Replayed: true`.
    """
    key = checked_key(idempotency_key, wish.idempotency_key)
    submission, version = await submission_of(parts, caller, wish, key=key, request_id=request_id)
    accepted = await parts.submitter.submit(submission)
    if accepted.created_at is None:
        return await accepted_answer(parts, accepted.job_id, is_new=accepted.is_new)
    link_job(accepted.job_id)
    job = new_job(submission, version, accepted.created_at, accepted.state)
    return answer_with(parts, job, is_new=True)


async def accepted_answer(parts: Parts, job_id: UUID, *, is_new: bool) -> Response:
    """Return 202 with the job in its current state, and whether it existed before."""
    link_job(job_id)
    return answer_with(parts, await parts.job_reader.job(job_id), is_new=is_new)


def answer_with(parts: Parts, job: JobView, *, is_new: bool) -> Response:
    """Return 202 with this job."""
    headers = [(b"location", f"{parts.settings.public_url or ''}/jobs/{job.id}".encode())]
    if not is_new:
        headers.append((b"idempotency-replayed", b"true"))
    return JsonAnswer(job_json(job, is_new=is_new), 202, headers)


@router.get("/jobs", operation_id="jobs.list", response_model=JobPage, summary="List jobs")
@guard(Scope.JOBS_READ, codes=("bad_input",))
async def list_jobs(query: Annotated[JobsQuery, Query()], caller: Caller, parts: Has) -> Any:
    """Returns the newest jobs first. To get the next page, send `next` as `cursor` with the same filter."""
    wanted = query.wanted(caller)
    before = None if query.cursor is None else _before(query.cursor, wanted.digest())
    page = await listing.page(parts.db, wanted, before=before, limit=query.limit)
    following = None if page.next is None else encode_page(_PAGE, wanted.digest(), str(page.next))
    items = [listed_job(job, page.doing.get(job.id)) for job in page.jobs]
    return JobPage.model_construct(items=items, next=following)


def _before(cursor: str, digest: str) -> UUID:
    try:
        return UUID(decode_page(cursor, _PAGE, digest))
    except ValueError:
        raise BadRequest("the cursor cannot be read", remedy="Send `next` of the last page unchanged") from None


@router.get("/jobs/{job_id}", operation_id="jobs.get", response_model=JobDocument, summary="Get a job")
@guard(Scope.JOBS_READ, codes=("not_found",))
async def get(
    request: Request, job_id: JobId, caller: Caller, parts: Has, if_none_match: IfNoneMatch = None
) -> Response:
    """Returns the job without its payloads; `links` has their addresses."""
    return tagged(request, job_document(await owned_job(parts, caller, job_id)).model_dump_json().encode())


@router.delete(
    "/jobs/{job_id}",
    operation_id="jobs.delete",
    status_code=204,
    response_class=Response,
    summary="Delete a finished job",
)
@guard(Scope.JOBS_WRITE, operation="write", codes=("not_found", "wrong_state"))
async def delete(job_id: JobId, caller: Caller, parts: Has, request_id: RequestId) -> None:
    """Removes the job from lists and from its address. The audit keeps its final state."""
    await owned_job(parts, caller, job_id)

    async def note(connection: asyncpg.Connection) -> None:
        await parts.audit.note(connection, AuditEvent.JOB_DELETED, caller, job_id=job_id, request_id=request_id)

    await control.delete(parts.db, job_id, note=note)
