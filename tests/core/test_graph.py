"""How a graph births, moves on and ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.world import BOOM, World, child, plan, task, timer
from windlass.core.birth import Birth, births
from windlass.core.outcome import Failure, Fault
from windlass.core.plan import OnFailure
from windlass.core.retry import Retry
from windlass.core.route import Fan
from windlass.core.states import JobState, StepState

S, J = StepState, JobState


@pytest.mark.covers("SCR-36")
def test_a_new_jobs_steps_are_queued_ready_or_blocked() -> None:
    graph = plan(task("a"), timer("b"), child("c"), task("d", each="inputs.xs"), task("e", "a", "b"))
    assert births(graph) == (
        Birth(S.QUEUED, 0),
        Birth(S.READY, 0),
        Birth(S.READY, 0),
        Birth(S.READY, 0),
        Birth(S.BLOCKED, 2),
    )


def test_a_fan_out_completes_with_its_last_child() -> None:
    world = World.of(task("a", each="inputs.xs"), task("b", "a"))
    world.route("a", Fan(("1", "2"), 0, 2))
    world.run("a", index=0)
    assert world.states() == {"a": S.PARKED, "b": S.BLOCKED}
    world.run("a", index=1)
    assert world.states() == {"a": S.COMPLETED, "b": S.QUEUED}
    assert world.step("a").output is None, "its output is its children's"


def test_a_fan_out_fails_only_when_all_its_children_have_ended() -> None:
    world = World.of(task("a", each="inputs.xs", retry=Retry(max_attempts=1)), task("b", "a"), task("c", "b"))
    world.route("a", Fan(("1", "2"), 0, 2))
    world.run("a", Failure(BOOM), index=0)
    assert world.states() == {"a": S.PARKED, "b": S.BLOCKED, "c": S.BLOCKED}
    world.run("a", index=1)
    assert world.states() == {"a": S.FAILED, "b": S.ABANDONED, "c": S.ABANDONED}
    assert world.job.state is J.FAILED
    assert world.job.error == replace(BOOM, step="a")
    assert world.step("a").error == Fault("children_failed", "1 of 2 children failed")
    assert world.job.steps_failed == 1, "a child's failure is not counted again for the fan-out"


def test_a_child_of_a_fan_out_can_stop_the_job() -> None:
    world = World.of(task("a", each="inputs.xs", retry=Retry(max_attempts=1)), task("b"), on_failure=OnFailure.STOP)
    world.route("a", Fan(("1", "2"), 0, 2))
    world.run("a", Failure(BOOM), index=0)
    assert world.job.state is J.FAILED
    assert world.step("a", 0).state is S.FAILED
    assert world.step("a", 1).state is S.CANCELLED
    assert world.states() == {"a": S.CANCELLED, "b": S.CANCELLED}


def test_what_two_branches_make_impossible_is_abandoned_once() -> None:
    world = World.of(task("a"), task("b"), task("c", "a", "b"))
    for name in "ab":
        world.run(name, Failure(BOOM, is_retryable=False))
    assert world.states()["c"] is S.ABANDONED
    world.check()


def test_a_step_that_was_abandoned_is_not_written_again() -> None:
    world = World.of(task("a"), task("b"), task("c", "a", "b"))
    world.run("a", Failure(BOOM, is_retryable=False))
    unmet = world.step("c").unmet
    world.run("b")
    assert world.step("c").unmet == unmet, "a write would give it a later end"
