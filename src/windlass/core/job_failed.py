"""What stands for a job that ended without a result, wherever it was waited for: beside the engine or over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from windlass.core.errors import WindlassError
from windlass.core.states import JobState


class JobFailed(WindlassError):
    """The job ended without a result: `state` says how, `step` and `fault` what failed first."""

    code = "job_failed"

    def __init__(self, job_id: UUID, state: JobState, step: str | None, fault: dict[str, Any]) -> None:
        where = f" at step {step}" if step else ""
        told = fault.get("message") or fault.get("code") or ""
        super().__init__(
            f"job {job_id} is {state}{where}{f': {told}' if told else ''}", remedy=f"See `windlass why {job_id}`"
        )
        self.job_id = job_id
        self.state = state
        self.step = step
        self.fault = fault


class JobCancelled(JobFailed):
    """The job was cancelled."""

    code = "job_cancelled"
