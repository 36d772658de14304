"""Summarises the activity of a whole job in one word, from the states of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from windlass.core.states import StepState
from windlass.core.wait import WaitKind


class WorkflowStatus(StrEnum):
    """A job's activity: it runs, waits for external work, or could continue."""

    RUNNING = "RUNNING"
    WAITING_SINGLE = "WAITING_SINGLE"
    WAITING_PARALLEL = "WAITING_PARALLEL"
    READY_TO_RESUME = "READY_TO_RESUME"


_CAN_GO_ON = (StepState.READY, StepState.QUEUED, StepState.HELD)


def workflow_status(
    counts: Mapping[tuple[StepState, str], int], *, has_started: bool, is_finished: bool
) -> WorkflowStatus | None:
    """Return the status of a job from the number of its steps by state and kind of wait; None once the job has ended.

    A fan-out's own step does not count, because it waits for its children; the children count.
    """
    if is_finished:
        return None
    by_state: dict[StepState, int] = {}
    for (state, kind), count in counts.items():
        if (state, kind) != (StepState.PARKED, WaitKind.FAN):
            by_state[state] = by_state.get(state, 0) + count
    if by_state.get(StepState.RUNNING):
        return WorkflowStatus.RUNNING
    if has_started and any(by_state.get(state) for state in _CAN_GO_ON):
        return WorkflowStatus.READY_TO_RESUME
    waiting = by_state.get(StepState.PARKED, 0)
    if not waiting or any(by_state.get(state) for state in _CAN_GO_ON):
        # No step has started yet, or the engine is between two steps.
        return WorkflowStatus.RUNNING
    return WorkflowStatus.WAITING_SINGLE if waiting == 1 else WorkflowStatus.WAITING_PARALLEL
