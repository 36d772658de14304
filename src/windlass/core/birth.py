"""Birth: decides the first state of a step's row, for submit, fan-out, retry and re-run.

A step with unmet dependencies is born BLOCKED. A step that the engine must resolve first (a condition, a fan-out, a
timer, a child job, a slot) is born READY, for the router. Any other step is born QUEUED, for a worker. Holds that the
job is submitted with turn READY and QUEUED into HELD, and the job is then PENDING. The steps of a job that the policy
denies are born ended: DENIED, or ABANDONED if they need another step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from windlass.core.hold import NO_HOLD, Hold
from windlass.core.plan import Node, Plan
from windlass.core.states import JobState, StepState


class Birth(NamedTuple):
    """The first state of a step."""

    state: StepState
    unmet: int = 0
    holds: Hold = NO_HOLD


def born(node: Node, *, unmet: int = 0, holds: Hold = NO_HOLD, is_child: bool = False) -> Birth:
    """Return the first state of a step of this node. `is_child` marks a child of the node's fan-out."""
    if unmet:
        return Birth(StepState.BLOCKED, unmet)
    is_routed = node.is_child_routed if is_child else node.is_routed
    if holds:
        return Birth(StepState.HELD, 0, holds | Hold.ROUTE if is_routed else holds)
    return Birth(StepState.READY if is_routed else StepState.QUEUED)


def births(plan: Plan, holds: Hold = NO_HOLD, *, is_denied: bool = False) -> tuple[Birth, ...]:
    """Return the first state of every step of a new job, in the order of the plan's nodes."""
    if is_denied:
        ended = (Birth(StepState.ABANDONED if node.needs else StepState.DENIED, len(node.needs)) for node in plan.nodes)
        return tuple(ended)
    return tuple(born(node, unmet=node.waits_for, holds=holds) for node in plan.nodes)


def first_state(states: Iterable[StepState], holds: Hold = NO_HOLD) -> JobState:
    """Return the first state of a job whose steps begin in these states, and which was submitted with these holds.

    PENDING means that no step of the job is in a queue yet: each waits for the router or for a hold. A job that is
    denied is PENDING too, until the next event of its first commit ends it.
    """
    if Hold.APPROVAL in holds:
        return JobState.APPROVAL_REQUIRED
    return JobState.QUEUED if StepState.QUEUED in states else JobState.PENDING
