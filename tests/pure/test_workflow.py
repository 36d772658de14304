"""One word for a whole job."""

from __future__ import annotations

import pytest

from windlass.core.states import StepState as S
from windlass.pure.workflow import WorkflowStatus as W
from windlass.pure.workflow import workflow_status

Counts = dict[tuple[S, str], int]


@pytest.mark.covers("SCR-32")
@pytest.mark.parametrize(
    ("counts", "has_started", "word"),
    [
        ({(S.QUEUED, ""): 1, (S.BLOCKED, ""): 2}, False, W.RUNNING),
        ({(S.RUNNING, ""): 1, (S.PARKED, "external"): 2, (S.QUEUED, ""): 1}, True, W.RUNNING),
        ({(S.COMPLETED, ""): 1, (S.QUEUED, ""): 1}, True, W.READY_TO_RESUME),
        ({(S.COMPLETED, ""): 1, (S.READY, ""): 1}, True, W.READY_TO_RESUME),
        ({(S.COMPLETED, ""): 1, (S.HELD, "paused"): 1, (S.PARKED, "external"): 1}, True, W.READY_TO_RESUME),
        ({(S.HELD, "paused"): 1, (S.PARKED, "timer"): 1}, False, W.RUNNING),
        ({(S.PARKED, "external"): 1, (S.BLOCKED, ""): 3}, True, W.WAITING_SINGLE),
        ({(S.PARKED, "timer"): 1}, False, W.WAITING_SINGLE),
        ({(S.PARKED, "external"): 1, (S.PARKED, "child"): 1}, True, W.WAITING_PARALLEL),
        ({(S.PARKED, "external"): 7}, True, W.WAITING_PARALLEL),
        ({(S.PARKED, "fan"): 1, (S.PARKED, "external"): 1}, True, W.WAITING_SINGLE),
        ({(S.PARKED, "fan"): 2, (S.RUNNING, ""): 0}, True, W.RUNNING),
        ({}, True, W.RUNNING),
    ],
)
def test_the_word_for_a_job_that_is_under_way(counts: Counts, has_started: bool, word: W) -> None:
    assert workflow_status(counts, has_started=has_started, is_finished=False) is word


def test_a_job_that_has_ended_does_nothing() -> None:
    assert workflow_status({(S.RUNNING, ""): 1}, has_started=True, is_finished=True) is None
