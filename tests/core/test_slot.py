"""Where a step stands in its line, for every state that it may be in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.world import JOB, START, plan, task
from windlass.core.draft import Draft, Job, Step
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.plan import Node
from windlass.core.slot import Slot, SlotState, grant, slot_state
from windlass.core.states import JobState, StepState
from windlass.core.wait import Wait

S = StepState


def step(state: StepState, waiting_for: str | None = None, **given: Any) -> Step:
    wait = Wait.parse(waiting_for) if state is S.PARKED and waiting_for else None
    holds = {"slot": Hold.SLOT, "paused": Hold.PAUSED, "paused,slot": Hold.PAUSED | Hold.SLOT}.get(waiting_for or "")
    return Step(0, 0, given.pop("index", None), state, 0, 1, 0, 0, wait=wait, holds=holds or NO_HOLD, **given)


def draft(
    of: Step, node: Node | None = None, *, state: JobState = JobState.PROCESSING, is_paused: bool = False
) -> Draft:
    job = Job(JOB, state, is_paused, 1, 1, 1, 0)
    return Draft(job, plan(node or task("a", provider="fal")), {of.no: of}, START)


@pytest.mark.parametrize(
    ("state", "waiting_for", "expected"),
    [
        (S.BLOCKED, None, None),
        (S.READY, None, None),
        (S.HELD, "slot", SlotState.WAITING),
        (S.HELD, "paused", SlotState.IDLE),
        (S.HELD, "paused,slot", SlotState.IDLE),
        (S.QUEUED, None, SlotState.HELD),
        (S.RUNNING, None, SlotState.HELD),
        (S.PARKED, "external:fal", SlotState.HELD),
        (S.PARKED, "retry", SlotState.IDLE),
        (S.PARKED, "snooze", SlotState.IDLE),
        (S.PARKED, "child", SlotState.IDLE),
        (S.PARKED, None, SlotState.IDLE),
        (S.COMPLETED, None, None),
        (S.FAILED, None, None),
        (S.CANCELLED, None, None),
    ],
)
@pytest.mark.parametrize("needs", [{"provider": "fal"}, {"concurrency": "k"}, {"cost": 0.5}])
def test_a_slot_follows_from_its_step(
    state: StepState, waiting_for: str | None, expected: SlotState | None, needs: dict[str, Any]
) -> None:
    assert slot_state(plan(task("a", **needs)), step(state, waiting_for)) == expected


def test_a_step_that_needs_nothing_has_no_slot() -> None:
    assert slot_state(plan(task("a")), step(S.RUNNING)) is None


def test_a_fan_out_has_none_and_its_children_have() -> None:
    fan = plan(task("a", provider="fal", each="[1]"))
    assert slot_state(fan, step(S.PARKED, "fan")) is None
    assert slot_state(fan, step(S.QUEUED, index=0)) is SlotState.HELD


def test_who_is_granted_may_be_claimed() -> None:
    waiting = step(S.HELD, "slot")
    of = draft(waiting)
    assert grant(of, 0)
    assert (waiting.state, waiting.waiting_for) == (S.QUEUED, None)
    assert of.queues == {"main_processing"}
    assert slot_state(of.plan, waiting) is SlotState.HELD


@pytest.mark.parametrize(
    "of",
    [
        draft(step(S.HELD, "paused")),
        draft(step(S.QUEUED)),
        draft(step(S.HELD, "paused,slot"), is_paused=True),
        draft(step(S.HELD, "slot"), state=JobState.CANCELLED),
        draft(Step(1, 0, None, S.HELD, 0, 1, 0, 0, holds=Hold.SLOT)),
    ],
    ids=["not in line", "granted before", "paused", "ended", "unknown"],
)
def test_who_does_not_stand_in_line_is_not_granted(of: Draft) -> None:
    assert not grant(of, 0)
    assert not of.is_changed


def test_a_slot_is_charged_to_its_caller_its_recipe_and_all_jobs_that_it_is_a_part_of() -> None:
    slot = Slot(JOB, 0, 0, "", 1, "", 1, 1, None, "ada", "film", ["j1", "j2"])
    assert slot.budgets == (("caller", "ada"), ("job", "j1"), ("job", "j2"), ("recipe", "film"))
