"""Reports the end of a job that a command waited for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from windlass.cli.command import Ambient
from windlass.cli.exits import Exit, exit_for_job
from windlass.client.asking import converted
from windlass.client.async_client import AsyncClient
from windlass.client.views import JobView, failure_of
from windlass.core.states import JobState
from windlass.pure.job_failed import fault_frames


async def conclude(at: Ambient, client: AsyncClient, job_id: UUID, *, has_remedy: bool = True, **more: Any) -> Exit:
    """Print the output or the failure of a finished job. With --json, print its document with `output` and `more`."""
    document = await client.call("GET", f"/jobs/{job_id}")
    view = converted(document, JobView)
    code = exit_for_job(view.status)
    output = await client.call("GET", f"/jobs/{job_id}/output") if view.status is JobState.COMPLETED else None
    if at.as_json:
        at.screen.document({**document, **more, "output": output})
    elif view.status is JobState.COMPLETED:
        at.screen.document(output)
    else:
        failure = failure_of(view)
        remedy = failure.remedy if has_remedy else None
        at.screen.error(failure.message, remedy, int(code), fault_frames(failure.fault))
    return code
