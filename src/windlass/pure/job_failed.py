"""The exceptions for a job that ended without a result, in the SDK and in the HTTP client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from windlass.core.errors import WindlassError
from windlass.core.states import JobState

# Exceptions that a handler raises on purpose; their class adds nothing to the message.
_OURS = "windlass."


def fault_text(fault: Mapping[str, Any]) -> str:
    """Return a fault as Python prints an exception, `KeyError: 'data'`; only the message for exceptions of Windlass."""
    message, kind = str(fault.get("message") or fault.get("code") or ""), str(fault.get("kind") or "")
    if not kind or kind.startswith(_OURS) or message == kind.rpartition(".")[2]:
        return message
    return f"{kind}: {message}"


def fault_frames(fault: Mapping[str, Any]) -> str:
    """Return the last traceback frames of an unexpected exception; empty for exceptions of Windlass."""
    return "" if str(fault.get("kind") or _OURS).startswith(_OURS) else str(fault.get("detail") or "")


class JobFailed(WindlassError):
    """The job ended without a result. `status` is its final state; `step` and `fault` describe the first failure."""

    code = "job_failed"

    def __init__(self, job_id: UUID, status: JobState, step: str | None, fault: dict[str, Any]) -> None:
        where = f" at step {step}" if step else ""
        told = fault_text(fault)
        super().__init__(
            f"job {job_id} is {status}{where}{f': {told}' if told else ''}", remedy=f"See `windlass why {job_id}`"
        )
        self.job_id = job_id
        self.status = status
        self.step = step
        self.fault = fault


class JobCancelled(JobFailed):
    """The job was cancelled."""

    code = "job_cancelled"
