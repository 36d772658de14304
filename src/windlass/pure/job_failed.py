"""What stands for a job that ended without a result, wherever it was waited for: beside the engine or over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from windlass.core.errors import WindlassError
from windlass.core.states import JobState

# Exceptions that a handler raises on purpose; their class says nothing that the message does not.
_OURS = "windlass."


def fault_text(fault: Mapping[str, Any]) -> str:
    """A fault as Python prints an exception, `KeyError: 'data'`; the message alone if the class is one of ours."""
    message, kind = str(fault.get("message") or fault.get("code") or ""), str(fault.get("kind") or "")
    if not kind or kind.startswith(_OURS) or message == kind.rpartition(".")[2]:
        return message
    return f"{kind}: {message}"


def fault_frames(fault: Mapping[str, Any]) -> str:
    """Where an unexpected exception was raised: the last frames of its traceback. Empty for exceptions of ours."""
    return "" if str(fault.get("kind") or _OURS).startswith(_OURS) else str(fault.get("detail") or "")


class JobFailed(WindlassError):
    """The job ended without a result: `state` says how, `step` and `fault` what failed first."""

    code = "job_failed"

    def __init__(self, job_id: UUID, state: JobState, step: str | None, fault: dict[str, Any]) -> None:
        where = f" at step {step}" if step else ""
        told = fault_text(fault)
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
