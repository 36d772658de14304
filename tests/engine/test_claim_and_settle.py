"""The two doors: claiming starts a step, settling ends it, and each attempt counts once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.engine.rig import QUEUE, Rig, plan, task
from windlass.core.errors import Broken
from windlass.core.outcome import Failure, Fault, Parked, Released, Report, Snooze, Success
from windlass.core.retry import Retry
from windlass.engine import control
from windlass.engine.claim import CLAIM_MAX, claim, held, held_keys
from windlass.engine.note import Note, note
from windlass.engine.settle import settle
from windlass.views import read

BOOM = Fault("boom", "it broke")
ONE = plan(task("a"))
CHAIN = plan(task("a"), task("b", "a"))


def zero() -> float:
    return 0.0


@pytest.mark.covers("SCR-08", "SCR-37")
async def test_a_claimed_step_runs_under_a_new_attempt(rig: Rig) -> None:
    job = await rig.submit(ONE, {"x": 1}, deadline_s=60)
    one = await rig.claim_one()
    assert (one.job_id, one.no, one.attempt, one.node, one.input) == (job, 0, 1, 0, '{"x":1}')
    assert one.deadline_s == 60
    assert [step.started_at for step in await read.steps(rig.db, job)] == [rig.clock.now()]
    assert await rig.state(job) == "PROCESSING"
    assert await rig.types(job) == ["job.submitted", "job.processing", "step.running"]


@pytest.mark.covers("SCR-24", "COR-87", "JN-63")
async def test_a_step_is_claimed_once(rig: Rig) -> None:
    for _ in range(20):
        await rig.submit(ONE)
    taken = await asyncio.gather(*(rig.claim(3) for _ in range(12)))
    keys = [(one.job_id, one.no) for batch in taken for one in batch]
    assert len(keys) == len(set(keys)) == 20


@pytest.mark.covers("SCR-40")
async def test_higher_priority_goes_first_and_then_the_older_job(rig: Rig) -> None:
    low, high, later = [await rig.submit(ONE, priority=p) for p in (0, 5, 0)]
    assert [(await rig.claim_one()).job_id for _ in range(3)] == [high, low, later]


@pytest.mark.covers("CIX-04", "CIX-20")
async def test_a_worker_takes_only_from_its_queues(rig: Rig) -> None:
    await rig.submit(plan(task("a", queue="gpu")))
    assert await rig.claim() == []
    assert len(await claim(rig.db, worker=rig.worker, queues=["gpu", QUEUE], limit=CLAIM_MAX + 1)) == 1


@pytest.mark.covers("COR-78")
async def test_a_claim_finds_work_behind_a_job_that_is_being_written_to(rig: Rig) -> None:
    busy, free = await rig.submit(ONE), await rig.submit(ONE)
    async with rig.db.connection() as connection, connection.transaction():
        await connection.execute("SELECT FROM windlass.jobs WHERE id = $1 FOR UPDATE", busy)
        assert (await rig.claim_one()).job_id == free


async def test_a_claim_waits_for_the_only_job_there_is(rig: Rig) -> None:
    job = await rig.submit(ONE)
    async with rig.db.connection() as connection, connection.transaction():
        await connection.execute("SELECT FROM windlass.jobs WHERE id = $1 FOR UPDATE", job)
        waiting = asyncio.create_task(rig.claim(1))
        await asyncio.sleep(0.05)
        assert not waiting.done()
    assert [one.job_id for one in await waiting] == [job]


async def test_an_idle_worker_takes_one_step_and_is_told_of_more(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("b", run="a")), {"x": 1}, deadline_s=60)
    first = await claim(rig.db, worker=rig.worker, queues=[QUEUE], limit=10, is_idle=True)
    second = await claim(rig.db, worker=rig.worker, queues=[QUEUE], limit=10, is_idle=True)
    assert [(one.job_id, one.no, one.input, one.deadline_s) for one in (*first, *second)] == [
        (job, 0, '{"x":1}', 60),
        (job, 1, '{"x":1}', 60),
    ]
    assert (first.is_more, second.is_more) == (True, False)
    assert sorted(await held(rig.db, rig.worker), key=lambda one: one.no) == [*first, *second]
    assert await rig.types(job) == ["job.submitted", "job.processing", "step.running", "step.running"]
    assert await claim(rig.db, worker=rig.worker, queues=[QUEUE], limit=10, is_idle=True) == []


async def test_an_idle_worker_looks_further_when_the_first_jobs_are_being_written_to(rig: Rig) -> None:
    busy = [await rig.submit(ONE) for _ in range(3)]
    free = await rig.submit(ONE)
    async with rig.db.connection() as connection, connection.transaction():
        await connection.execute("SELECT FROM windlass.jobs WHERE id = ANY($1) FOR UPDATE", busy)
        taken = await claim(rig.db, worker=rig.worker, queues=[QUEUE], limit=10, is_idle=True)
        assert [one.job_id for one in taken] == [free]


async def test_the_steps_of_one_job_share_its_inputs(rig: Rig) -> None:
    await rig.submit(plan(task("a"), task("b"), task("c")), {"x": 1})
    taken = await rig.claim(3)
    assert [one.input for one in taken] == ['{"x":1}'] * 3


@pytest.mark.covers("JN-25")
async def test_what_a_worker_holds_can_be_asked(rig: Rig) -> None:
    await rig.submit(plan(task("a"), task("b")))
    taken = await rig.claim()
    assert sorted(await held(rig.db, rig.worker), key=lambda o: o.no) == sorted(taken, key=lambda o: o.no)
    assert await held_keys(rig.db, rig.worker) == {(o.job_id, o.no, o.attempt) for o in taken}
    assert await held(rig.db, rig.ids.new()) == []
    await rig.settle(taken[0])
    assert await held_keys(rig.db, rig.worker) == {(taken[1].job_id, taken[1].no, 1)}


@pytest.mark.covers("SCR-10", "SCR-20", "SCR-21", "JN-26", "JN-72")
async def test_success_starts_what_follows_and_ends_the_job(rig: Rig) -> None:
    job = await rig.submit(CHAIN)
    await rig.run_one(Success('{"x":1}'))
    assert await rig.states(job) == ["COMPLETED", "QUEUED"]
    await rig.run_one(Success("2"))
    view = await read.job(rig.db, job)
    assert (view.state, view.steps_open, view.finished_at) == ("COMPLETED", 0, rig.clock.now())
    assert [step.output for step in await read.steps(rig.db, job)] == [{"x": 1}, 2]
    seqs = [event.seq for event in await read.events(rig.db, job)]
    assert seqs == list(range(1, view.event_seq + 1))


@pytest.mark.covers("SCR-33")
async def test_of_any_number_of_reports_for_one_attempt_one_takes_effect(rig: Rig) -> None:
    job = await rig.submit(CHAIN)
    one = await rig.claim_one()
    reports = [Report(job, 0, 1, Success(str(n)), plan_hash=one.plan_hash, node=0) for n in range(8)]
    settled = await asyncio.gather(*(settle(rig.db, [report], spread=zero) for report in reports))
    took = [n for n, each in enumerate(settled) if each.took_effect[0]]
    assert len(took) == 1
    assert (await read.steps(rig.db, job))[0].output == took[0]
    same = await settle(rig.db, reports, spread=zero)
    assert not any(same.took_effect)


async def test_a_late_report_is_refused(rig: Rig) -> None:
    await rig.submit(ONE)
    old = await rig.claim_one()
    assert await rig.settle(old, Released())
    new = await rig.claim_one()
    assert (old.attempt, new.attempt) == (1, 2)
    assert not await rig.settle(old, Success('"old"'))
    assert await rig.settle(new, Success('"new"'))


async def test_a_report_for_nothing_is_refused(rig: Rig) -> None:
    job = await rig.submit(ONE)
    reports = [
        Report(rig.ids.new(), 0, 1, Success("1")),
        Report(job, 5, 1, Success("1")),
        Report(job, 0, 1, Success("1")),
    ]
    assert not any((await settle(rig.db, reports, spread=zero)).took_effect)


@pytest.mark.covers("COR-89")
async def test_reports_of_one_wide_job_that_arrive_together_all_count(rig: Rig) -> None:
    job = await rig.submit(plan(*(task(f"a{n}", run="a") for n in range(30)), task("z", *(f"a{n}" for n in range(30)))))
    taken = await rig.claim(100)
    batches = [taken[n::6] for n in range(6)]
    await asyncio.gather(
        *(
            settle(rig.db, [Report(o.job_id, o.no, o.attempt, Success("1")) for o in batch], spread=zero)
            for batch in batches
        )
    )
    assert (await rig.claim_one()).no == 30
    assert (await read.job(rig.db, job)).steps_open == 1


async def test_single_reports_of_one_job_that_collide_all_count(rig: Rig) -> None:
    job = await rig.submit(plan(*(task(f"a{n}") for n in range(12))))
    taken = await rig.claim(100)
    settled = await asyncio.gather(*(rig.settle(one) for one in taken))
    assert all(settled)
    assert await rig.state(job) == "COMPLETED"


@pytest.mark.covers("COR-04", "JN-26", "JN-28", "JN-72")
async def test_retries_wait_longer_each_time_and_then_fail_the_job(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", retry=Retry(max_attempts=3, base_s=10, factor=3, jitter=0)), task("b", "a")))
    for wait_s in (10, 30):
        await rig.run_one(Failure(BOOM))
        rig.clock.advance(wait_s - 1)
        await rig.loops.run_until_idle()
        assert await rig.claim() == []
        rig.clock.advance(1)
        assert await rig.loops.run_until_idle() == 1
    await rig.run_one(Failure(BOOM))
    view = await read.job(rig.db, job)
    assert (view.state, view.error["code"], view.steps_failed) == ("FAILED", "boom", 1)
    assert await rig.states(job) == ["FAILED", "ABANDONED"]


async def test_a_retryable_failure_from_outside_is_tried_again(rig: Rig) -> None:
    job = await rig.submit(ONE)
    one = await rig.run_one(Parked("fal", within_s=500))
    assert await rig.settle(one, Failure(BOOM, after_s=7))
    [step] = await read.steps(rig.db, job)
    assert (step.state, step.waiting_for) == ("PARKED", "retry")
    assert step.wake_at == rig.clock.now() + timedelta(seconds=7)


async def test_a_wait_outside_ends_with_its_report_or_its_time(rig: Rig) -> None:
    heard, unheard = await rig.submit(ONE), await rig.submit(ONE)
    for one in await rig.claim():
        await rig.settle(one, Parked("fal", within_s=60))
    report = Report(heard, 0, 1, Success('"film"'), source="webhook", idempotency_key="w1")
    assert (await settle(rig.db, [report], spread=zero)).took_effect == (True,)
    assert (await settle(rig.db, [report], spread=zero)).took_effect == (False,)
    rig.clock.advance(60)
    await rig.loops.run_until_idle()
    assert [await rig.state(job) for job in (heard, unheard)] == ["COMPLETED", "TIMEOUT"]
    events = await read.events(rig.db, heard)
    assert [(e.source, e.idempotency_key) for e in events if e.type == "step.completed"] == [("webhook", "w1")]
    assert (await read.job(rig.db, unheard)).error["code"] == "wait_timeout"


async def test_a_snooze_runs_again_later_and_costs_no_retry(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", retry=Retry(max_attempts=1))))
    for _ in range(3):
        await rig.run_one(Snooze(5))
        rig.clock.advance(5)
        await rig.loops.run_until_idle()
    await rig.run_one()
    assert await rig.state(job) == "COMPLETED"
    assert [step.attempt for step in await read.steps(rig.db, job)] == [4]


@pytest.mark.covers("SCR-09", "SCR-15")
async def test_notes_are_fenced_like_reports(rig: Rig) -> None:
    job = await rig.submit(ONE)
    one = await rig.claim_one()
    notes = [
        Note(job, 0, 1, 40.0, "almost", preview='{"p":1}', checkpoint='{"c":1}'),
        Note(job, 0, 9, 50.0),
        Note(rig.ids.new(), 0, 1, 50.0),
    ]
    assert await note(rig.db, notes) == [True, False, False]
    view, [step] = await read.job(rig.db, job), await read.steps(rig.db, job)
    assert view.state == "PREVIEW"
    assert view.progress == step.progress == {"pct": 40.0, "message": "almost"}
    await rig.settle(one, Released())
    again = await rig.claim_one()
    assert again.checkpoint == '{"c":1}'
    assert await rig.state(job) == "PREVIEW"
    assert await note(rig.db, [Note(job, 0, 2, 60.0)]) == [True]
    assert await rig.state(job) == "PROCESSING"


@pytest.mark.parametrize("outcome", [Success("1"), Failure(BOOM, is_retryable=False)])
async def test_a_report_without_its_plan_is_placed_by_the_engine(rig: Rig, outcome: Success | Failure) -> None:
    job = await rig.submit(CHAIN)
    await rig.claim_one()
    settled = await settle(rig.db, [Report(job, 0, 1, outcome)], spread=zero)
    assert settled.took_effect == (True,)
    assert settled.queues == (frozenset({QUEUE}) if isinstance(outcome, Success) else frozenset())


async def test_a_claim_of_nothing_is_refused_rather_than_mistaken_for_an_empty_queue(rig: Rig) -> None:
    await rig.submit(ONE)
    with pytest.raises(Broken, match="a limit of at least 1"):
        await claim(rig.db, worker=rig.worker, queues=[QUEUE], limit=0)


async def test_a_pause_outlasts_an_attempt_that_was_told_of_again(rig: Rig) -> None:
    """The worker lost the claim's answer, the job was paused, and only then did the worker ask what it holds."""
    job = await rig.submit(plan(task("a"), task("b", "a")))
    await rig.claim_one()
    await control.pause(rig.db, job)
    (one,) = await held(rig.db, rig.worker)
    assert (await settle(rig.db, [one.report(Success("1"))], spread=lambda: 0.0)).took_effect == (True,)
    assert (await read.job(rig.db, job)).is_paused
    assert await rig.states(job) == ["COMPLETED", "HELD"]
