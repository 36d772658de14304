"""Holds: a step is QUEUED if and only if no hold is left, and each owner removes its own hold only."""

from __future__ import annotations

from functools import reduce
from operator import or_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.world import World, task
from windlass.core.birth import Birth, births, born, first_state
from windlass.core.control import pause, resume
from windlass.core.draft import Draft
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.slot import grant
from windlass.core.states import JobState, StepState
from windlass.core.wait import Wait, WaitKind, waiting_for

S = StepState
FAL = {"provider": "fal"}


def held(*holds: Hold, needs: dict[str, str] | None = None) -> Draft:
    """A job of one step that is held by these."""
    draft = World.of(task("a", **(needs or {}))).draft()
    step = draft.steps[0]
    step.state, step.holds = S.HELD, reduce(or_, holds)
    draft.job.state = JobState.PENDING
    return draft


@given(st.lists(st.sampled_from([Hold.PAUSED, Hold.SLOT]), min_size=1, max_size=20))
def test_a_step_is_queued_exactly_when_its_last_hold_is_removed(order: list[Hold]) -> None:
    draft = held(Hold.PAUSED, Hold.SLOT)
    step = draft.steps[0]
    for hold in order:
        had = hold in step.holds
        assert draft.release(step, hold) is had
        assert (step.state is S.QUEUED) == (step.holds == NO_HOLD)
        assert step.state in (S.QUEUED, S.HELD)
    assert step.holds == NO_HOLD or set(order) != {Hold.PAUSED, Hold.SLOT}


def test_a_release_removes_its_own_hold_only() -> None:
    draft = held(Hold.PAUSED, Hold.SLOT)
    assert draft.release(draft.steps[0], Hold.SLOT)
    assert (draft.steps[0].state, draft.steps[0].holds) == (S.HELD, Hold.PAUSED)
    assert not draft.release(draft.steps[0], Hold.SLOT)


@pytest.mark.parametrize("state", [S.BLOCKED, S.READY, S.RUNNING, S.PARKED, S.COMPLETED])
def test_only_what_waits_for_a_worker_can_be_held(state: StepState) -> None:
    draft = World.of(task("a")).draft()
    draft.steps[0].state = state
    assert not draft.hold(draft.steps[0], Hold.PAUSED)
    assert not draft.release(draft.steps[0], Hold.PAUSED)


def test_a_step_that_is_held_gives_its_place_back() -> None:
    draft = World.of(task("a", **FAL)).draft()
    step = draft.steps[0]
    step.state = S.QUEUED
    assert draft.hold(step, Hold.PAUSED)
    assert step.holds == Hold.PAUSED | Hold.SLOT
    assert not draft.hold(step, Hold.PAUSED)


def test_the_granter_lets_a_step_go_only_if_nothing_else_holds_it() -> None:
    draft = held(Hold.PAUSED, Hold.SLOT, needs=FAL)
    assert not grant(draft, 0)
    draft.release(draft.steps[0], Hold.PAUSED)
    assert grant(draft, 0)
    assert draft.steps[0].state is S.QUEUED


def test_a_pause_holds_those_in_line_too_and_resume_leaves_them_in_line() -> None:
    draft = held(Hold.SLOT, needs=FAL)
    pause(draft)
    assert draft.steps[0].waiting_for == "paused,slot"
    resume(draft)
    assert (draft.steps[0].state, draft.steps[0].waiting_for) == (S.HELD, "slot")


def test_the_first_queued_step_queues_a_pending_job() -> None:
    draft = held(Hold.PAUSED)
    draft.release(draft.steps[0], Hold.PAUSED)
    assert draft.job.state is JobState.QUEUED
    assert [event.type for event in draft.events] == ["job.queued", "step.queued"]


def test_a_step_that_was_held_before_it_was_routed_goes_to_the_router() -> None:
    draft = held(Hold.PAUSED, Hold.ROUTE, needs=FAL)
    assert draft.hold(draft.steps[0], Hold.SLOT)
    draft.release(draft.steps[0], Hold.SLOT)
    draft.release(draft.steps[0], Hold.PAUSED)
    assert (draft.steps[0].state, draft.steps[0].holds, draft.has_ready) == (S.READY, NO_HOLD, True)
    assert draft.job.state is JobState.PENDING


def test_steps_are_born_alike_wherever_they_come_from() -> None:
    plain, slotted, fan = task("a"), task("b", **FAL), task("c", each="${inputs.xs}")
    assert [born(node) for node in (plain, slotted, fan)] == [Birth(S.QUEUED), Birth(S.READY), Birth(S.READY)]
    assert born(fan, is_child=True) == Birth(S.QUEUED)
    assert born(slotted, is_child=True) == Birth(S.READY)
    assert born(plain, unmet=2, holds=Hold.PAUSED) == Birth(S.BLOCKED, 2)
    assert born(plain, holds=Hold.PAUSED) == Birth(S.HELD, 0, Hold.PAUSED)
    assert born(slotted, holds=Hold.PAUSED) == Birth(S.HELD, 0, Hold.PAUSED | Hold.ROUTE)


def test_a_job_is_pending_until_one_of_its_steps_is_in_a_queue() -> None:
    plan = World.of(task("a"), task("b", "a")).plan
    assert first_state([birth.state for birth in births(plan)]) is JobState.QUEUED
    assert first_state([birth.state for birth in births(plan, Hold.PAUSED)]) is JobState.PENDING
    assert first_state([S.READY, S.BLOCKED]) is JobState.PENDING


@given(st.builds(Wait, st.sampled_from(WaitKind), st.text(max_size=20)))
def test_a_wait_is_read_as_it_was_written(wait: Wait) -> None:
    assert Wait.parse(str(wait)) == wait


def test_people_are_shown_the_holds_or_the_wait() -> None:
    assert waiting_for(None, Hold.PAUSED | Hold.SLOT) == "paused,slot"
    assert waiting_for(Wait(WaitKind.EVENT, "approved"), NO_HOLD) == "event:approved"
    assert waiting_for(None, NO_HOLD) is None
