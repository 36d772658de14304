"""The two tables."""

from __future__ import annotations

import pytest

from windlass.core.errors import IllegalMove
from windlass.core.states import (
    JOB_MOVES,
    JOB_TERMINAL,
    STEP_DONE,
    STEP_MOVES,
    STEP_TERMINAL,
    JobState,
    StepState,
    check_job_move,
    check_step_move,
)


def test_every_state_has_a_row() -> None:
    assert set(JOB_MOVES) == set(JobState)
    assert set(STEP_MOVES) == set(StepState)


@pytest.mark.covers("SCR-15", "SCR-16")
@pytest.mark.parametrize("source", JobState)
@pytest.mark.parametrize("target", JobState)
def test_a_job_moves_as_the_table_says_and_in_no_other_way(source: JobState, target: JobState) -> None:
    if target in JOB_MOVES[source]:
        check_job_move(source, target)
    else:
        with pytest.raises(IllegalMove, match=f"from {source} to {target}"):
            check_job_move(source, target)


@pytest.mark.parametrize("source", StepState)
@pytest.mark.parametrize("target", StepState)
def test_a_step_moves_as_the_table_says_and_in_no_other_way(source: StepState, target: StepState) -> None:
    if target in STEP_MOVES[source]:
        check_step_move(source, target)
    else:
        with pytest.raises(IllegalMove, match=f"from {source} to {target}"):
            check_step_move(source, target)


def test_the_only_way_out_of_a_jobs_end_is_quarantine() -> None:
    ways = {(state, target) for state in JOB_TERMINAL for target in JOB_MOVES[state]}
    assert ways == {(JobState.COMPLETED, JobState.OUTPUT_QUARANTINED)}


@pytest.mark.covers("SCR-42", "JN-63")
def test_a_step_that_ended_stays_as_it_is() -> None:
    assert all(not STEP_MOVES[state] for state in STEP_TERMINAL)
    assert STEP_DONE < STEP_TERMINAL


@pytest.mark.parametrize("state", sorted(set(JobState) - JOB_TERMINAL))
def test_an_open_job_can_be_cancelled_expired_and_timed_out(state: JobState) -> None:
    assert {JobState.CANCELLED, JobState.EXPIRED, JobState.TIMEOUT, JobState.FAILED} <= JOB_MOVES[state]


@pytest.mark.parametrize("state", sorted(set(StepState) - STEP_TERMINAL))
def test_an_open_step_can_be_cancelled(state: StepState) -> None:
    assert StepState.CANCELLED in STEP_MOVES[state]
