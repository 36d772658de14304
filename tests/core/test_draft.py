"""What a draft gathers: bells, waits, and which steps must be loaded."""

from __future__ import annotations

from datetime import timedelta

from tests.core.world import START, World, event, plan, task
from windlass.core.control import cancel
from windlass.core.draft import touched_by
from windlass.core.effect import MoveExpiry
from windlass.core.states import StepState
from windlass.core.wait import Wait, WaitKind


def test_a_draft_knows_the_earliest_time_it_wakes_somebody() -> None:
    draft = World.of(task("a", when="x"), task("b", when="x"), task("c", when="x")).draft()
    for no, seconds in ((0, 9), (1, 5), (2, 7)):
        draft.park(draft.steps[no], "timer", START + timedelta(seconds=seconds))
    assert draft.wakes_at == START + timedelta(seconds=5)


def test_a_draft_knows_which_queues_it_filled() -> None:
    world = World.of(task("a", when="x", queue="gpu"), task("b", when="x"))
    draft = world.draft()
    draft.admit(draft.steps[0])
    assert draft.queues == {"gpu"}
    draft.job.is_paused = True
    draft.admit(draft.steps[1])
    assert draft.queues == {"gpu"}, "nobody need look for what is held"


def test_an_untouched_draft_has_nothing_to_write() -> None:
    assert not World.of(task("a")).draft().is_changed


def test_a_success_touches_its_dependents_and_a_failure_all_that_follow() -> None:
    graph = plan(task("a"), task("b", "a"), task("c", "b"), task("d"))
    assert touched_by(graph, 0, 0, is_success=True) == {0, 1}
    assert touched_by(graph, 0, 0, is_success=False) == {0, 1, 2}
    assert touched_by(graph, 7, 0, is_success=True) == {7, 0, 1, 2}


def test_only_a_step_that_stands_in_line_is_held_for_it() -> None:
    draft = World.of(task("a", provider="fal"), task("b", when="x")).draft()
    draft.admit(draft.steps[1])
    draft.admit(draft.steps[0])
    assert (draft.steps[0].state, draft.steps[0].waiting_for) == (StepState.HELD, "slot")
    assert draft.steps[1].state is StepState.QUEUED


def test_a_success_changes_a_line_only_beside_a_step_that_stands_in_one() -> None:
    graph = plan(task("a"), task("b", "a"), task("c", "b", provider="fal"), task("d", "c"), task("e"))
    assert graph.lined == {1, 2}
    assert not graph.is_plain and plan(task("a"), task("b", "a")).is_plain
    assert not plan(event("a", run="x")).is_plain


def test_a_step_of_a_paused_job_is_held_for_that_and_not_in_line() -> None:
    draft = World.of(task("a", provider="fal")).draft()
    draft.job.is_paused = True
    draft.admit(draft.steps[0], keeps_slot=True)
    assert (draft.steps[0].state, draft.steps[0].waiting_for) == (StepState.HELD, "paused,slot")


def test_a_step_that_keeps_its_place_is_queued() -> None:
    draft = World.of(task("a", provider="fal")).draft()
    draft.admit(draft.steps[0], keeps_slot=True)
    assert draft.steps[0].state is StepState.QUEUED


def test_a_wait_moves_a_default_expiry_and_no_other() -> None:
    world = World.of(task("a"))
    step = world.step("a")
    world.claim(step)
    soon, late = world.now + timedelta(hours=1), world.now + timedelta(hours=2)
    for expires_at, until, moved in ((None, late, None), (late, soon, late), (soon, late, late + timedelta(days=1))):
        draft = world.draft()
        draft.job.expires_at = expires_at
        draft.park(draft.steps[step.no], Wait(WaitKind.RETRY), until)
        assert draft.job.expires_at == moved
        assert draft.effects == ([MoveExpiry(moved)] if moved not in (None, expires_at) else [])


def test_a_draft_changes_a_line_if_it_changes_a_step_of_one_or_sweeps() -> None:
    plain = World.of(task("a")).draft()
    plain.changed[0] = plain.steps[0]
    assert not plain.is_slotted
    mixed = World.of(task("a"), task("b", provider="fal"))
    draft = mixed.draft()
    draft.changed[0] = draft.steps[0]
    assert not draft.is_slotted
    draft.changed[1] = draft.steps[1]
    assert draft.is_slotted
    swept = mixed.draft()
    assert cancel(swept, "") and swept.is_slotted and not swept.changed
