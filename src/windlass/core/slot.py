"""Slots: a step's wait for, and hold on, provider places, a concurrency key and money.

A step that needs any of them is HELD until the granter grants all of them. It then holds them until it ends or is
deferred. One row records the need and the holding, and is written in the commit of the step's move: nothing can leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from windlass.core.draft import Draft, Step
from windlass.core.hold import Hold
from windlass.core.plan import Plan
from windlass.core.states import STEP_TERMINAL, StepState


class SlotState(StrEnum):
    """The states of a slot."""

    WAITING = "WAITING"
    HELD = "HELD"  # the step has everything that it waited for
    IDLE = "IDLE"  # the step will wait again, after a retry, a snooze or a pause


# Marks a step that waits behind other steps of its key. A step that lacks another resource is marked `kind:name`.
BEHIND_KEY = "key"

# The kind and the name of a resource; for a budget, its scope and its name.
Name = tuple[str, str]


class Slot(NamedTuple):
    """A step's need for, or holding of, each resource: its row in `slots`.

    `fence` numbers the holdings of the step. Each grant raises it, so a returned holding is never taken for the next.
    """

    job_id: UUID
    no: int
    fence: int
    provider: str
    places: int
    key: str
    # The capacity of the key, and the share of it that this step takes.
    most: int
    takes: int
    cost: Decimal | None
    caller: str
    recipe: str
    # The step's job and all its parent jobs.
    jobs: Sequence[str]
    # False if no budget is known to exist.
    is_charged: bool = True
    # The cost of the attempt that gives this slot back.
    spent: Decimal = Decimal(0)

    @property
    def budgets(self) -> tuple[Name, ...]:
        """The budgets that the step is charged to, if they exist."""
        return ("caller", self.caller), *(("job", job) for job in self.jobs), ("recipe", self.recipe)


def slot_state(plan: Plan, step: Step) -> SlotState | None:
    """Return the state of a step's slot in the step's current state, or None if the step needs no slot now."""
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
    # The router has not resolved the step yet.
    return None


def grant(draft: Draft, no: int) -> bool:
    """Let workers claim a step whose slot was granted. Return False if the step no longer waits for its slot."""
    step = draft.steps.get(no)
    if step is None or draft.is_finished or step.holds != Hold.SLOT:
        return False
    return draft.release(step, Hold.SLOT)
