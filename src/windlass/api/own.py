"""Whose job it is. Another caller's job is not there, for every method and in the same words."""

from __future__ import annotations

from uuid import UUID

from windlass.api.parts import Parts
from windlass.core.caller import CallerContext
from windlass.core.errors import NotFound
from windlass.views.read import JobView


async def owned_job(parts: Parts, caller: CallerContext, job_id: UUID) -> JobView:
    """The job, if it is the caller's to see."""
    job = await parts.looks.job(job_id)
    if job.deleted_at is not None or caller.owner not in (None, job.caller):
        raise no_job(job_id)
    return job


def no_job(job_id: UUID) -> NotFound:
    """The refusal for a job that is not there, or not theirs."""
    return NotFound(f"there is no job {job_id}", remedy="GET /jobs lists yours")
