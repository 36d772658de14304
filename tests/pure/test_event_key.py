"""The idempotency keys of events."""

from __future__ import annotations

from uuid import UUID

from windlass.pure.event_key import event_key

JOB = UUID(int=7)


def test_a_key_names_the_job_the_number_and_the_type() -> None:
    assert event_key(JOB, 3, "job.queued", None, None) == f"{JOB}:3:job.queued"


def test_the_key_of_a_steps_event_names_step_and_attempt() -> None:
    assert event_key(JOB, 3, "step.running", 2, 5) == f"{JOB}:3:step.running:2:5"
    assert event_key(JOB, 3, "step.queued", 2, None) == f"{JOB}:3:step.queued:2:0"
