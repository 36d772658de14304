"""The states of a job and of a step, and every move between them.

A job or a step moves only as the two tables below allow; `check_job_move` and `check_step_move` refuse any other move.
The pictures in docs/concepts/states.md are drawn from these tables, and a test fails when they are stale.

A terminal job has one further move: COMPLETED to OUTPUT_QUARANTINED, when a scan of the output finds content that must
stay hidden. Running a finished job again creates a new job that names the old one.
"""

from __future__ import annotations

from enum import StrEnum

from windlass.core.errors import IllegalMove


class JobState(StrEnum):
    """The job states that a caller sees. DELETED is a flag on the row: as a state it would hide how the job ended."""

    PENDING = "PENDING"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    QUEUED = "QUEUED"
    DISPATCHING = "DISPATCHING"
    PROCESSING = "PROCESSING"
    PREVIEW = "PREVIEW"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    DENIED = "DENIED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    OUTPUT_QUARANTINED = "OUTPUT_QUARANTINED"

    # An enum's default hash is a Python function, and every lookup in the tables below would call it.
    __hash__ = str.__hash__


class StepState(StrEnum):
    """The states of one step of a job."""

    BLOCKED = "BLOCKED"
    READY = "READY"
    HELD = "HELD"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    PARKED = "PARKED"
    COMPLETED = "COMPLETED"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    DENIED = "DENIED"
    QUARANTINED = "QUARANTINED"
    ABANDONED = "ABANDONED"

    __hash__ = str.__hash__


J, S = JobState, StepState

# Any unfinished job can end in one of these states.
_JOB_ENDINGS = frozenset({J.FAILED, J.DENIED, J.TIMEOUT, J.CANCELLED, J.EXPIRED})

JOB_MOVES: dict[JobState, frozenset[JobState]] = {
    J.PENDING: frozenset({J.APPROVAL_REQUIRED, J.QUEUED, J.COMPLETED}) | _JOB_ENDINGS,
    # PENDING: the approval was given or is not needed any more, so nothing but the steps' own holds is left.
    J.APPROVAL_REQUIRED: frozenset({J.PENDING, J.QUEUED}) | _JOB_ENDINGS,
    # A worker's claim starts the first step in the same commit. So a job passes DISPATCHING only if the engine must
    # resolve the first steps (a condition, a fan-out, a timer, a child job).
    J.QUEUED: frozenset({J.DISPATCHING, J.PROCESSING, J.COMPLETED}) | _JOB_ENDINGS,
    J.DISPATCHING: frozenset({J.PROCESSING, J.COMPLETED}) | _JOB_ENDINGS,
    J.PROCESSING: frozenset({J.PREVIEW, J.COMPLETED}) | _JOB_ENDINGS,
    J.PREVIEW: frozenset({J.PROCESSING, J.COMPLETED}) | _JOB_ENDINGS,
    J.COMPLETED: frozenset({J.OUTPUT_QUARANTINED}),
    J.FAILED: frozenset(),
    J.DENIED: frozenset(),
    J.TIMEOUT: frozenset(),
    J.CANCELLED: frozenset(),
    J.EXPIRED: frozenset(),
    J.OUTPUT_QUARANTINED: frozenset(),
}

STEP_MOVES: dict[StepState, frozenset[StepState]] = {
    S.BLOCKED: frozenset({S.READY, S.QUEUED, S.HELD, S.ABANDONED, S.CANCELLED}),
    S.READY: frozenset({S.HELD, S.QUEUED, S.PARKED, S.COMPLETED, S.SKIPPED, S.FAILED, S.DENIED, S.CANCELLED}),
    # HELD to HELD: the job was paused while the step waited for its slot, or the other way round.
    S.HELD: frozenset({S.HELD, S.READY, S.QUEUED, S.DENIED, S.CANCELLED}),
    S.QUEUED: frozenset({S.RUNNING, S.HELD, S.DENIED, S.CANCELLED}),
    S.RUNNING: frozenset({S.QUEUED, S.HELD, S.PARKED, S.COMPLETED, S.FAILED, S.DENIED, S.CANCELLED, S.QUARANTINED}),
    # PARKED to PARKED: the external work failed with a retryable error, so the step now waits for its retry.
    S.PARKED: frozenset(
        {S.PARKED, S.READY, S.QUEUED, S.HELD, S.COMPLETED, S.FAILED, S.DENIED, S.CANCELLED, S.QUARANTINED}
    ),
    S.COMPLETED: frozenset(),
    S.SKIPPED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELLED: frozenset(),
    S.DENIED: frozenset(),
    S.QUARANTINED: frozenset(),
    S.ABANDONED: frozenset(),
}

JOB_TERMINAL = frozenset({J.COMPLETED, J.FAILED, J.DENIED, J.TIMEOUT, J.CANCELLED, J.EXPIRED, J.OUTPUT_QUARANTINED})
STEP_TERMINAL = frozenset(state for state, moves in STEP_MOVES.items() if not moves)
# Dependents may start once a step is in one of these states: a skipped step counts as done.
STEP_DONE = frozenset({S.COMPLETED, S.SKIPPED})


def check_job_move(source: JobState, target: JobState) -> None:
    """Raise IllegalMove if the table does not list the move."""
    if target not in JOB_MOVES[source]:
        raise IllegalMove(f"a job cannot go from {source} to {target}")


def check_step_move(source: StepState, target: StepState) -> None:
    """Raise IllegalMove if the table does not list the move."""
    if target not in STEP_MOVES[source]:
        raise IllegalMove(f"a step cannot go from {source} to {target}")
