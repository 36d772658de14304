"""Checks who owns a job. Another caller's job does not exist: every method answers with the same words."""

from __future__ import annotations

from uuid import UUID

from windlass.api.parts import Parts
from windlass.core.caller import CallerContext
from windlass.core.errors import NotFound
from windlass.views.read import JobView


async def owned_job(parts: Parts, caller: CallerContext, job_id: UUID) -> JobView:
    """Return the job if the caller may see it; else raise NotFound."""
    job = await parts.job_reader.job(job_id)
    if job.deleted_at is not None or caller.owner not in (None, job.caller):
        raise no_job(job_id)
    return job


def no_job(job_id: UUID) -> NotFound:
    """Return the error for a job that does not exist or belongs to another caller."""
    return NotFound(f"there is no job {job_id}", remedy="GET /jobs lists yours")
