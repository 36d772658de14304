"""What a draft gathers: bells, waits, and which steps must be loaded."""

from __future__ import annotations

from datetime import timedelta

from tests.core.world import START, World, plan, task
from windlass.core.draft import touched_by


def test_a_draft_knows_the_earliest_time_it_wakes_somebody() -> None:
    draft = World.of(task("a", when="x"), task("b", when="x"), task("c", when="x")).draft()
    for no, seconds in ((0, 9), (1, 5), (2, 7)):
        draft.park(draft.steps[no], "timer", START + timedelta(seconds=seconds))
    assert draft.wakes_at == START + timedelta(seconds=5)


def test_a_draft_knows_which_queues_it_filled() -> None:
    world = World.of(task("a", when="x", queue="gpu"), task("b", when="x"))
    draft = world.draft()
    draft.enqueue(draft.steps[0])
    assert draft.queues == {"gpu"}
    draft.job.is_paused = True
    draft.enqueue(draft.steps[1])
    assert draft.queues == {"gpu"}, "nobody need look for what is held"


def test_an_untouched_draft_has_nothing_to_write() -> None:
    assert not World.of(task("a")).draft().is_changed


def test_a_success_touches_its_dependents_and_a_failure_all_that_follow() -> None:
    graph = plan(task("a"), task("b", "a"), task("c", "b"), task("d"))
    assert touched_by(graph, 0, 0, is_success=True) == {0, 1}
    assert touched_by(graph, 0, 0, is_success=False) == {0, 1, 2}
    assert touched_by(graph, 7, 0, is_success=True) == {7, 0, 1, 2}
