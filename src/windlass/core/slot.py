"""Standing in line: for a provider's place, for a concurrency key's, for money.

A step that needs one is HELD until it is granted, and then holds what it was granted until it ends or is put off. What
it holds is one row, written in the commit of the step's own move: there is nothing else that could leak.
"""

from __future__ import annotations

from enum import StrEnum

from windlass.core.draft import Draft, Step
from windlass.core.hold import Hold
from windlass.core.plan import Plan
from windlass.core.states import STEP_TERMINAL, StepState


class SlotState(StrEnum):
    """Where a step stands in its line."""

    WAITING = "WAITING"
    HELD = "HELD"  # it has all that it waited for
    IDLE = "IDLE"  # it will stand in line again: after a retry, a snooze, a pause


def slot_state(plan: Plan, step: Step) -> SlotState | None:
    """What a step's slot is once the step is as it is now; None when it needs none, or none any more."""
    node = plan.nodes[step.node]
    is_fan = node.each is not None and not step.is_child
    if not node.is_slotted or is_fan or step.state in STEP_TERMINAL:
        return None
    match step.state:
        case StepState.HELD if step.holds == Hold.SLOT:
            return SlotState.WAITING
        case StepState.QUEUED | StepState.RUNNING:
            return SlotState.HELD
        case StepState.PARKED if step.waits_for_provider:
            return SlotState.HELD
        case StepState.HELD | StepState.PARKED:
            return SlotState.IDLE
    # Not looked at by the router yet.
    return None


def grant(draft: Draft, no: int) -> bool:
    """The step has what it waited for: workers may claim it. False if it no longer stands in line."""
    step = draft.steps.get(no)
    if step is None or draft.is_finished or step.holds != Hold.SLOT:
        return False
    return draft.release(step, Hold.SLOT)
