"""What each outcome does to a step and to its job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.core.world import BOOM, JOB, OUTPUT, START, World, child, event, task
from windlass.core.effect import Charge, GiveUpWork, RecordWork
from windlass.core.external import ID_MAX, WAIT_S
from windlass.core.outcome import (
    SAFETY_DENIED,
    Cancel,
    Cost,
    Failure,
    Fault,
    Lost,
    Outcome,
    Parked,
    Released,
    Report,
    Snooze,
    Success,
)
from windlass.core.plan import OnFailure
from windlass.core.retry import LOSSES_MAX, SILENT_LOSSES_MAX, SUSPECT_LOSSES, Retry
from windlass.core.route import Await, Call, Run
from windlass.core.settle import DATABASE_LOST, MAX_RETRIES_EXCEEDED, settle
from windlass.core.states import JobState, StepState

S, J = StepState, JobState
FLAT = Retry(max_attempts=3, base_s=10, factor=2, jitter=0.5)


def test_success_completes_the_step_and_the_job() -> None:
    world = World.of(task("a"))
    assert world.run("a")
    assert world.states() == {"a": S.COMPLETED}
    assert world.step("a").output == OUTPUT
    assert world.job.state is J.COMPLETED


@pytest.mark.covers("SCR-38")
def test_success_lets_dependents_start_once_all_they_need_is_done() -> None:
    world = World.of(task("a"), task("b"), task("c", "a", "b"), task("d", "b", when="inputs.x"))
    world.run("a")
    assert world.states() == {"a": S.COMPLETED, "b": S.QUEUED, "c": S.BLOCKED, "d": S.BLOCKED}
    world.run("b")
    assert world.states() == {"a": S.COMPLETED, "b": S.COMPLETED, "c": S.QUEUED, "d": S.READY}


@pytest.mark.covers("SCR-43")
def test_one_success_starts_all_that_waited_for_it_alone() -> None:
    world = World.of(task("a"), *(task(name, "a") for name in "bcd"), task("e", "b", "c", "d"))
    world.run("a")
    assert world.states() == {"a": S.COMPLETED, "b": S.QUEUED, "c": S.QUEUED, "d": S.QUEUED, "e": S.BLOCKED}


@pytest.mark.covers("JN-28", "JN-66")
def test_a_failure_is_tried_again_after_a_wait_with_jitter() -> None:
    world = World.of(task("a", retry=FLAT))
    step = world.step("a")
    world.claim(step)
    assert world.report(step, Failure(BOOM), spread=0.5)
    step = world.step("a")
    assert (step.state, step.waiting_for, step.failures) == (S.PARKED, "retry", 1)
    assert step.wake_at == START + timedelta(seconds=12.5)
    assert step.error == BOOM


@pytest.mark.covers("SCR-11")
def test_the_last_allowed_failure_is_final() -> None:
    world = World.of(task("a", retry=FLAT))
    for wait_s in (10, 20):
        world.run("a", Failure(BOOM))
        world.pass_time(wait_s)
        assert world.wake(world.step("a"))
    world.run("a", Failure(BOOM))
    assert world.states() == {"a": S.FAILED}
    assert world.job.state is J.FAILED
    assert world.job.error == replace(BOOM, step="a")


def test_a_failure_beyond_the_attempts_that_the_policy_allows_is_final() -> None:
    world = World.of(task("a", retry=FLAT))
    world.job.attempts_max = 2
    world.run("a", Failure(BOOM))
    world.pass_time(10)
    assert world.wake(world.step("a"))
    world.run("a", Failure(BOOM))
    assert (world.states(), world.job.state) == ({"a": S.FAILED}, J.FAILED)
    assert world.job.error is not None and world.job.error.code == MAX_RETRIES_EXCEEDED


def test_a_step_that_the_policy_denies_denies_its_job() -> None:
    world = World.of(task("a", retry=FLAT))
    world.run("a", Failure(Fault(SAFETY_DENIED, "no"), is_retryable=False))
    assert world.job.state is J.DENIED


def test_a_job_ends_as_the_first_failure_says() -> None:
    world = World.of(task("a"), task("b"))
    world.run("a", Failure(Fault(SAFETY_DENIED, "no"), is_retryable=False))
    world.run("b")
    assert world.job.state is J.DENIED


def test_a_final_failure_is_not_tried_again() -> None:
    world = World.of(task("a"))
    world.run("a", Failure(BOOM, is_retryable=False))
    assert world.job.state is J.FAILED


def test_a_failure_may_ask_for_its_own_wait() -> None:
    world = World.of(task("a"))
    world.run("a", Failure(BOOM, after_s=77))
    assert world.step("a").wake_at == START + timedelta(seconds=77)


@pytest.mark.covers("SCR-82")
def test_an_attempt_that_lost_its_database_waits_15_then_30_seconds() -> None:
    world = World.of(task("a", retry=FLAT))
    for wait_s in (15, 30):
        world.run("a", Failure(Fault(DATABASE_LOST, "gone")))
        assert world.step("a").wake_at == world.now + timedelta(seconds=wait_s)
        world.pass_time(wait_s)
        world.wake(world.step("a"))


def test_a_snooze_is_no_failure() -> None:
    world = World.of(task("a"))
    world.run("a", Snooze(30))
    step = world.step("a")
    assert (step.state, step.waiting_for, step.failures) == (S.PARKED, "snooze", 0)
    assert not world.wake(step)
    world.pass_time(30)
    assert world.wake(world.step("a"))
    assert world.step("a").state is S.QUEUED


@pytest.mark.parametrize("within_s", [None, 60.0])
def test_a_parked_step_waits_for_a_report_from_outside(within_s: float | None) -> None:
    world = World.of(task("a"))
    world.run("a", Parked("fal", within_s))
    step = world.step("a")
    assert (step.state, step.waiting_for) == (S.PARKED, "external:fal")
    assert step.wake_at == (None if within_s is None else START + timedelta(seconds=within_s))
    assert world.report(step, Success("2"))
    assert world.step("a").output == "2"


def test_a_retryable_failure_from_outside_starts_a_new_attempt_after_its_wait() -> None:
    world = World.of(task("a", retry=FLAT))
    world.run("a", Parked("fal"))
    assert world.report(world.step("a"), Failure(BOOM))
    assert world.step("a").waiting_for == "retry"
    assert not world.report(world.step("a"), Success(OUTPUT)), "the attempt is over"
    world.pass_time(10)
    assert world.wake(world.step("a"))
    assert world.run("a")


@pytest.mark.parametrize("outcome", [Snooze(1), Parked("x"), Released(), Lost()])
def test_what_only_a_running_attempt_can_say_is_not_heard_of_a_parked_one(outcome: Outcome) -> None:
    world = World.of(task("a"))
    world.run("a", Parked("fal"))
    assert not world.report(world.step("a"), outcome)


@pytest.mark.parametrize("first", [Snooze(1), Failure(BOOM)])
def test_a_step_that_waits_for_its_own_time_hears_nobody(first: Outcome) -> None:
    world = World.of(task("a"))
    world.run("a", first)
    assert not world.report(world.step("a"), Success(OUTPUT))


def test_a_child_jobs_end_is_heard() -> None:
    world = World.of(child("a"))
    world.route("a", Call({}))
    assert world.report(world.step("a"), Success(OUTPUT))
    assert world.job.state is J.COMPLETED


@pytest.mark.parametrize(("reason", "told"), [("", "the handler cancelled the job"), ("enough", "enough")])
def test_cancel_ends_the_whole_job(reason: str, told: str) -> None:
    world = World.of(task("a"), task("b", "a"), task("c"))
    world.run("a", Cancel(reason))
    assert world.states() == dict.fromkeys("abc", S.CANCELLED)
    assert world.job.state is J.CANCELLED
    assert world.job.error == Fault("cancelled", told)


def test_a_released_attempt_counts_for_nothing() -> None:
    world = World.of(task("a"))
    world.run("a", Released())
    step = world.step("a")
    assert (step.state, step.failures, step.losses) == (S.QUEUED, 0, 0)


ALONE = Lost(company=0, how="the worker process died with signal 9 (SIGKILL)")


def test_the_first_loss_is_free_and_the_second_sends_the_step_apart() -> None:
    for lost in (Lost(), Lost(company=0), Lost(company=59)):
        world = World.of(task("a", retry=Retry(max_attempts=1)))
        world.run("a", lost)
        step = world.step("a")
        assert (step.state, step.losses, step.failures, step.queue) == (S.QUEUED, 1, 0, None)
        world.run("a", lost)
        step = world.step("a")
        assert (step.state, step.losses, step.queue) == (S.QUEUED, SUSPECT_LOSSES, "main_processing!")


def test_a_step_that_is_lost_in_company_never_fails_of_it() -> None:
    world = World.of(task("a", retry=Retry(max_attempts=1)))
    for _ in range(4 * LOSSES_MAX):
        world.run("a", Lost(company=1))
    step = world.step("a")
    assert (step.state, step.losses, step.queue) == (S.QUEUED, SUSPECT_LOSSES, "main_processing!")


@pytest.mark.parametrize(("count", "text"), [(2_100_000_000, "2.1 GB"), (5_000_000, "5 MB")])
def test_a_step_that_kills_its_worker_alone_fails_with_the_evidence(count: int, text: str) -> None:
    world = World.of(task("a"), task("b", "a"))
    for _ in range(LOSSES_MAX - 1):
        world.run("a", ALONE)
        assert world.step("a").state is S.QUEUED
    world.run("a", replace(ALONE, peak_bytes=count, lines=("one", "two", "three", "four")))
    step = world.step("a")
    assert (step.state, world.step("b").state, world.job.state) == (S.FAILED, S.ABANDONED, J.FAILED)
    assert step.error == Fault(
        "worker_lost",
        "the worker process died with signal 9 (SIGKILL) while it ran this step alone, 3 times; "
        f"peak memory {text}; last lines: two | three | four",
        detail="one\ntwo\nthree\nfour",
    )


def test_a_step_whose_hosts_fall_silent_needs_more_losses_to_fail() -> None:
    world = World.of(task("a"))
    for _ in range(SILENT_LOSSES_MAX - 1):
        world.run("a", Lost())
        assert world.step("a").state is S.QUEUED
    world.run("a", Lost())
    assert world.step("a").error == Fault("worker_lost", "the worker was lost while it ran this step alone, 5 times")


def test_a_suspect_waits_apart_after_a_retry_too() -> None:
    world = World.of(task("a", retry=FLAT))
    for outcome in (Lost(), Lost(), Failure(BOOM)):
        world.run("a", outcome)
    world.pass_time(3600)
    world.wake(world.step("a"))
    step = world.step("a")
    assert (step.state, step.queue) == (S.QUEUED, "main_processing!")


def test_the_event_of_a_loss_tells_what_is_known() -> None:
    world = World.of(task("a"))
    world.run("a", Lost())
    world.run("a", ALONE)
    assert [event.payload for event in world.events if event.type == "step.queued"] == [
        {"because": "worker_lost"},
        {"because": "worker_lost", "company": 0, "how": ALONE.how},
    ]


def test_a_late_report_is_refused() -> None:
    world = World.of(task("a"))
    old = world.claim(world.step("a"))
    world.report(world.step("a"), Lost())
    world.claim(world.step("a"))
    assert not world.report(world.step("a"), Success("old"), attempt=old)
    assert world.report(world.step("a"), Success("new"))
    assert world.step("a").output == "new"


def test_of_two_equal_reports_one_takes_effect() -> None:
    world = World.of(task("a"), task("b"))
    assert world.run("a")
    assert not world.report(world.step("a"), Success(OUTPUT))


@pytest.mark.covers("COR-14")
def test_a_report_for_a_finished_job_or_a_step_that_is_not_there_is_refused() -> None:
    world = World.of(task("a"), task("b"))
    world.claim(world.step("b"))
    world.run("a", Cancel())
    assert not world.report(world.step("b"), Success(OUTPUT))
    ghost = world.step("a")
    ghost.no = 99
    assert not World.of(task("a")).report(ghost, Success(OUTPUT))


@pytest.mark.covers("SCR-21", "SCR-44")
def test_a_failure_abandons_all_that_comes_after_and_lets_the_rest_finish() -> None:
    world = World.of(task("a"), task("b"), task("c", "a"), task("d", "c", "b"), task("e", "b"))
    world.run("a", Failure(BOOM, is_retryable=False))
    assert world.states() == {"a": S.FAILED, "b": S.QUEUED, "c": S.ABANDONED, "d": S.ABANDONED, "e": S.BLOCKED}
    assert world.job.state is J.PROCESSING
    world.run("b")
    world.run("e")
    assert world.job.state is J.FAILED


def test_the_first_failure_is_the_jobs_error() -> None:
    world = World.of(task("a"), task("b"))
    world.run("a", Failure(BOOM, is_retryable=False))
    world.run("b", Failure(Fault("later", ""), is_retryable=False))
    assert world.job.error == replace(BOOM, step="a")
    assert world.job.steps_failed == 2


def test_a_recipe_may_ask_to_stop_at_the_first_failure() -> None:
    world = World.of(task("a"), task("b"), on_failure=OnFailure.STOP)
    world.claim(world.step("b"))
    world.run("a", Failure(BOOM, is_retryable=False))
    assert world.states() == {"a": S.FAILED, "b": S.CANCELLED}
    assert world.job.state is J.FAILED


def test_a_result_counts_while_the_job_is_paused_but_starts_nothing() -> None:
    world = World.of(task("a"), task("b", "a"))
    world.claim(world.step("a"))
    world.job.is_paused = True
    assert world.report(world.step("a"), Success(OUTPUT))
    assert world.states() == {"a": S.COMPLETED, "b": S.HELD}


def fal(**given: object) -> World:
    """A step with a provider, granted its place."""
    world = World.of(task("a", provider="fal", **given), task("b", "a"))
    world.route("a", Run())
    assert world.step("a").waiting_for == "slot"
    assert world.grant("a")
    return world


def test_a_failure_that_is_not_counted_is_tried_again_for_ever() -> None:
    world = World.of(task("a", retry=replace(FLAT, max_attempts=1)))
    for _ in range(5):
        world.run("a", Failure(BOOM, is_counted=False, after_s=3))
        assert (world.step("a").waiting_for, world.step("a").failures) == ("retry", 0)
        world.pass_time(3)
        assert world.wake(world.step("a"))
    world.run("a", Failure(BOOM))
    assert world.job.state is J.FAILED


def test_a_failure_that_is_not_counted_waits_as_the_first_one_does() -> None:
    world = World.of(task("a", retry=FLAT))
    world.run("a", Failure(BOOM, is_counted=False))
    assert world.step("a").wake_at == START + timedelta(seconds=10)


def test_a_wait_for_a_provider_always_has_a_deadline() -> None:
    for given, parked, within_s in (
        ({}, Parked("fal"), WAIT_S),
        ({"wait_s": 7.0}, Parked("fal"), 7),
        ({"wait_s": 7.0}, Parked("fal", 3), 3),
    ):
        world = fal(**given)
        world.run("a", parked)
        assert world.step("a").wake_at == START + timedelta(seconds=within_s)


def test_only_a_wait_that_is_over_is_given_up() -> None:
    world = fal(retry=FLAT)
    world.claim(world.step("a"))
    draft = world.draft()
    assert settle(draft, Report(JOB, 0, 1, Failure(BOOM)), 0.0)
    assert draft.effects == [], "it never waited"
    world.report(world.step("a"), Parked("fal"))
    draft = world.draft()
    assert settle(draft, Report(JOB, 0, 1, Failure(BOOM)), 0.0)
    assert draft.effects == [GiveUpWork(0)]


def test_any_wait_outside_has_the_deadline_that_its_step_names() -> None:
    world = World.of(task("a", wait_s=5.0))
    world.run("a", Parked("a person"))
    assert world.step("a").wake_at == START + timedelta(seconds=5)


def test_what_a_provider_calls_its_work_is_handed_on() -> None:
    world = fal()
    step = world.step("a")
    world.claim(step)
    draft = world.draft()
    assert settle(draft, Report(JOB, 0, 1, Parked("fal", external_id="req-1")), 0.0)
    assert draft.effects == [RecordWork(0, "req-1")]


@pytest.mark.parametrize("bad", ["", "x" * (ID_MAX + 1), "a\x00b", "\ud800"])
def test_what_cannot_be_kept_as_an_id_fails_the_step(bad: str) -> None:
    world = fal()
    world.run("a", Parked("fal", external_id=bad))
    error = world.step("a").error
    assert error is not None and error.code == "bad_external_id"
    assert world.states() == {"a": S.FAILED, "b": S.ABANDONED}


def test_what_an_attempt_cost_is_kept_if_it_is_heard() -> None:
    world = fal()
    world.claim(world.step("a"))
    cost = Cost("0.25", tokens_in=3, provider="fal")
    draft = world.draft()
    assert settle(draft, Report(JOB, 0, 1, Failure(BOOM), cost=cost), 0.0)
    assert draft.effects == [Charge(0, 1, "fal", cost)]
    late = world.draft()
    assert not settle(late, Report(JOB, 0, 9, Success(OUTPUT), cost=cost), 0.0)
    assert settle(late, Report(JOB, 0, 1, Success(OUTPUT), cost=Cost("much")), 0.0)
    assert late.effects == []


@pytest.mark.parametrize("outcome", [Lost(), Released()])
def test_an_attempt_that_was_cut_short_keeps_its_place(outcome: Outcome) -> None:
    world = fal()
    world.run("a", outcome)
    assert world.step("a").state is S.QUEUED


@pytest.mark.parametrize("outcome", [Failure(BOOM), Snooze(10)])
def test_one_that_is_put_off_stands_in_line_again(outcome: Outcome) -> None:
    world = fal(retry=FLAT)
    world.run("a", outcome)
    world.pass_time(10)
    assert world.wake(world.step("a"))
    assert (world.step("a").state, world.step("a").waiting_for) == (S.HELD, "slot")


def test_an_event_that_was_waited_for_is_heard() -> None:
    world = World.of(event("approved"))
    world.route("approved", Await("{}"))
    assert world.report(world.step("approved"), Success('{"by":"me"}'))
    assert world.job.state is J.COMPLETED


def test_a_report_names_the_worker_that_ran_the_attempt() -> None:
    mine, theirs = UUID(int=1), UUID(int=2)
    world = fal()
    world.claim(world.step("a"))
    draft = world.draft()
    draft.steps[0].worker = mine
    assert not settle(draft, Report(JOB, 0, 1, Success(OUTPUT), worker=theirs), 0.0)
    assert settle(draft, Report(JOB, 0, 1, Parked("fal"), worker=mine), 0.0)
    for worker in (mine, theirs):
        assert not settle(draft, Report(JOB, 0, 1, Success(OUTPUT), worker=worker), 0.0), (
            "it waits for word from outside"
        )
    assert settle(draft, Report(JOB, 0, 1, Success(OUTPUT)), 0.0)
