"""How the engine resolves steps, and resumes steps that are due."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.core.world import BOOM, START, World, child, event, task, timer
from windlass.core.control import cancel
from windlass.core.effect import ExpectEvent, StartJob, UseKey
from windlass.core.outcome import Failure, Parked, Success
from windlass.core.retry import Retry
from windlass.core.route import Await, Call, Fan, Resolution, Run, Skip, Sleep, Unresolvable, route, wake
from windlass.core.slot import grant
from windlass.core.states import JobState, StepState

S, J = StepState, JobState


@pytest.mark.covers("SCR-47")
def test_a_false_condition_skips_the_step_which_counts_as_done() -> None:
    world = World.of(task("a", when="inputs.x"), task("b", "a"))
    assert world.route("a", Skip())
    assert world.states() == {"a": S.SKIPPED, "b": S.QUEUED}
    assert world.step("a").output == '{"skipped":true}'


@pytest.mark.covers("SCR-07", "SCR-15")
def test_a_true_condition_queues_the_step() -> None:
    world = World.of(task("a", when="inputs.x"))
    assert world.route("a", Run())
    assert world.states() == {"a": S.QUEUED}
    assert world.job.state is J.DISPATCHING


def test_a_pending_job_is_queued_on_the_way() -> None:
    world = World.of(task("a", when="inputs.x"))
    world.job.state = J.PENDING
    world.route("a", Run())
    assert [event.type for event in world.events] == ["job.queued", "job.dispatching", "step.queued"]


def test_a_step_that_cannot_be_resolved_fails() -> None:
    world = World.of(task("a", when="inputs.x"), task("b", "a"))
    world.route("a", Unresolvable(BOOM))
    assert world.states() == {"a": S.FAILED, "b": S.ABANDONED}
    assert world.job.state is J.FAILED


@pytest.mark.parametrize(
    "resolution", [Skip(), Run(), Fan(("1",), 0, 1), Sleep(1), Call({}), Await("{}"), Unresolvable(BOOM)]
)
def test_only_a_ready_step_of_an_open_job_that_is_not_paused_is_routed(resolution: Resolution) -> None:
    world = World.of(task("a", when="inputs.x"), task("b"))
    assert not world.route("b", resolution)
    assert not route(world.draft(), 99, resolution)
    world.job.is_paused = True
    assert not world.route("a", resolution)
    world.job.is_paused = False
    draft = world.draft()
    cancel(draft, "")
    world.put(draft)
    assert not world.route("a", resolution)


def test_an_empty_fan_out_is_complete() -> None:
    world = World.of(task("a", each="inputs.xs"), task("b", "a"))
    world.route("a", Fan((), 0, 0))
    assert world.states() == {"a": S.COMPLETED, "b": S.QUEUED}


def test_a_wide_fan_out_takes_several_batches() -> None:
    world = World.of(task("a", each="inputs.xs"))
    world.route("a", Fan(("1", "2"), 0, 3))
    assert world.states() == {"a": S.READY}
    world.run("a", index=0)
    assert world.route("a", Fan(("1", "2"), 0, 3)), "a router that is late changes nothing"
    assert world.job.steps_total == 3
    world.route("a", Fan(("3",), 2, 3))
    assert world.states() == {"a": S.PARKED}
    for index in (1, 2):
        world.run("a", index=index)
    assert world.job.state is J.COMPLETED
    world.check()


def test_a_fan_out_whose_children_were_all_done_before_the_last_batch_completes_with_it() -> None:
    # So it stands after a retry that kept every child but not the last batch.
    world = World.of(task("a", each="inputs.xs"))
    fan = world.step("a")
    fan.fan, fan.fanned, fan.unmet = 1, 1, 0
    world.route("a", Fan((), 1, 1))
    assert world.states() == {"a": S.COMPLETED}


@pytest.mark.covers("COR-103", "COR-104")
def test_a_timer_parks_until_its_time_and_is_then_done() -> None:
    world = World.of(timer("a"), task("b", "a"))
    world.route("a", Sleep(5))
    step = world.step("a")
    assert (step.state, step.waiting_for, step.wake_at) == (S.PARKED, "timer", START + timedelta(seconds=5))
    assert not world.wake(step)
    world.pass_time(5)
    assert world.wake(step)
    assert world.states() == {"a": S.COMPLETED, "b": S.QUEUED}
    assert not world.wake(world.step("a"))


def test_a_child_recipe_starts_a_job_that_answers_to_a_new_attempt() -> None:
    world = World.of(child("a"))
    draft = world.draft()
    route(draft, 0, Call({"x": 1}))
    [new] = draft.effects_of(StartJob)
    assert (new.no, new.attempt, new.recipe, new.inputs) == (0, 1, "other", {"x": 1})
    assert draft.steps[0].waiting_for == "child"


def test_a_child_recipe_whose_failure_may_be_retried_is_started_anew() -> None:
    world = World.of(child("a", retry=Retry(base_s=1, jitter=0)))
    world.route("a", Call({}))
    world.report(world.step("a"), Failure(BOOM))
    world.pass_time(1)
    assert world.wake(world.step("a"))
    assert world.states() == {"a": S.READY}
    world.route("a", Call({}))
    assert world.step("a").attempt == 2


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_wait_outside_that_lasts_too_long_fails_the_step(name: str) -> None:
    world = World.of(task("a"), child("b"))
    world.run("a", Parked("fal", within_s=9))
    world.route("b", Call({}))
    world.step("b").wake_at = START + timedelta(seconds=9)
    world.pass_time(9)
    assert world.wake(world.step(name))
    assert world.states()[name] is S.FAILED
    error = world.step(name).error
    assert error is not None and error.code == "wait_timeout"


@pytest.mark.covers("COR-107")
def test_nothing_is_woken_that_has_no_time_is_not_there_or_belongs_to_a_finished_job() -> None:
    world = World.of(task("a"))
    assert not wake(world.draft(), 99)
    world.run("a", Parked("fal"))
    world.pass_time(1e6)
    assert not world.wake(world.step("a"))
    draft = world.draft()
    cancel(draft, "")
    draft.steps[0].wake_at = START
    assert not wake(draft, 0)


def test_a_retry_that_comes_due_while_the_job_is_paused_is_held() -> None:
    world = World.of(task("a", retry=Retry(base_s=1, jitter=0)))
    world.run("a", Failure(BOOM))
    world.job.is_paused = True
    world.pass_time(1)
    assert world.wake(world.step("a"))
    assert world.step("a").state is S.HELD


def test_a_step_that_needs_a_place_is_held_under_its_key() -> None:
    world = World.of(task("a", concurrency="k:{inputs.x}"))
    draft = world.draft()
    assert route(draft, 0, Run("k:7"))
    assert (draft.steps[0].state, draft.steps[0].waiting_for) == (S.HELD, "slot")
    assert draft.effects == [UseKey(0, "k:7")]
    assert not draft.queues, "no worker need look for what stands in line"


def test_routing_may_move_a_step_to_another_queue_before_it_is_queued() -> None:
    world = World.of(task("a", when="inputs.x"), task("b", "a"))
    draft = world.draft()
    assert route(draft, 0, Run(queue="gpu"))
    assert (draft.steps[0].state, draft.steps[0].queue, draft.steps[0].is_requeued) == (S.QUEUED, "gpu", True)
    assert draft.queues == {"gpu"}, "the workers of its own queue need not look"


def test_a_step_that_is_moved_and_stands_in_line_is_queued_in_its_new_queue_once_it_is_granted() -> None:
    world = World.of(task("a", provider="fal"))
    draft = world.draft()
    assert route(draft, 0, Run(queue="gpu"))
    assert (draft.steps[0].state, draft.steps[0].queue) == (S.HELD, "gpu")
    world.put(draft)
    draft = world.draft()
    assert grant(draft, 0)
    assert draft.queues == {"gpu"}


def test_the_children_of_a_fan_out_stand_in_line_one_by_one() -> None:
    world = World.of(task("a", each="inputs.xs", provider="fal"))
    world.route("a", Fan(("1", "2"), 0, 2))
    assert [world.step("a", i).state for i in (0, 1)] == [S.READY, S.READY]
    for i in (0, 1):
        world.route("a", Run(), i)
        assert world.step("a", i).state is S.HELD
        world.grant("a", i)
        world.run("a", index=i)
    assert world.job.state is J.COMPLETED


def test_a_step_waits_for_an_event_until_its_deadline() -> None:
    world = World.of(event("a", run="approved", wait_s=60.0))
    draft = world.draft()
    assert route(draft, 0, Await('{"id":7}'))
    assert draft.effects == [ExpectEvent(0, '{"id":7}')]
    world.put(draft)
    step = world.step("a")
    assert (step.state, step.waiting_for, step.attempt) == (S.PARKED, "event:approved", 1)
    assert step.wake_at == START + timedelta(seconds=60)
    world.pass_time(60)
    assert world.wake(step)
    assert world.states() == {"a": S.FAILED}, "people get no second chance"


def test_a_step_may_wait_for_an_event_for_ever() -> None:
    world = World.of(event("a"))
    world.route("a", Await("{}"))
    assert world.step("a").wake_at is None


def test_an_event_that_came_early_completes_the_step_at_once() -> None:
    world = World.of(event("a"), task("b", "a"))
    world.route("a", Await("{}", early='{"yes":true}'))
    assert world.states() == {"a": S.COMPLETED, "b": S.QUEUED}
    assert (world.step("a").output, world.step("a").attempt) == ('{"yes":true}', 1)
    assert not world.report(world.step("a"), Success("2")), "a second one is late"


def test_a_provider_that_was_silent_too_long_is_asked_again_as_the_policy_says() -> None:
    world = World.of(task("a", provider="fal", retry=Retry(max_attempts=2, base_s=1, jitter=0)))
    world.route("a", Run())
    for waiting_for in ("retry", None):
        assert world.grant("a")
        world.run("a", Parked("fal", within_s=9))
        world.pass_time(9)
        assert world.wake(world.step("a"))
        assert world.step("a").waiting_for == waiting_for
        world.pass_time(1)
        world.wake(world.step("a"))
    error = world.step("a").error
    assert error is not None and error.code == "wait_timeout"
    assert world.job.state is J.TIMEOUT
