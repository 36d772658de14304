"""The error that stands for a job without a result."""

from __future__ import annotations

from uuid import UUID

import pytest

from windlass.core.states import JobState
from windlass.pure.job_failed import JobCancelled, JobFailed, fault_frames

JOB = UUID(int=7)


@pytest.mark.parametrize(
    ("step", "fault", "told"),
    [
        ("render", {"message": "no more film", "code": "program"}, "is FAILED at step render: no more film"),
        ("render", {"code": "timeout"}, "is FAILED at step render: timeout"),
        (
            "render",
            {"code": "exception", "kind": "KeyError", "message": "'data'"},
            "is FAILED at step render: KeyError: 'data'",
        ),
        ("render", {"kind": "a.Lost", "message": "Lost"}, "is FAILED at step render: Lost"),
        ("render", {"kind": "windlass.core.errors.Permanent", "message": "no"}, "is FAILED at step render: no"),
        (None, {}, "is FAILED"),
    ],
)
def test_it_says_where_and_why(step: str | None, fault: dict[str, str], told: str) -> None:
    error = JobFailed(JOB, JobState.FAILED, step, fault)
    assert error.message == f"job {JOB} {told}"
    assert error.remedy == f"See `windlass why {JOB}`"
    assert (error.job_id, error.status, error.step, error.fault) == (JOB, JobState.FAILED, step, fault)


def test_the_frames_of_an_unexpected_exception_are_told() -> None:
    assert fault_frames({"kind": "KeyError", "detail": 'File "a.py", line 3'}) == 'File "a.py", line 3'
    assert fault_frames({"kind": "KeyError"}) == fault_frames({"detail": "x"}) == fault_frames({}) == ""
    assert fault_frames({"kind": "windlass.core.errors.Permanent", "detail": "x"}) == ""


def test_a_cancelled_job_is_a_failed_one_with_a_code_of_its_own() -> None:
    assert issubclass(JobCancelled, JobFailed)
    assert (JobFailed.code, JobCancelled.code) == ("job_failed", "job_cancelled")
