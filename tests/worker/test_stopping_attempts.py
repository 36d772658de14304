"""An attempt can be made to stop: by its time limit, by a cancelled job, by a worker that ends."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.worker.yard import Yard, node, until, until_state
from windlass.core.hold import Hold
from windlass.core.outcome import Success
from windlass.core.plan import Undo
from windlass.core.retry import Retry
from windlass.core.states import JobState, StepState
from windlass.engine.claim import Taken, claim
from windlass.engine.control import cancel
from windlass.engine.settle import settle
from windlass.views import read, workers
from windlass.worker import worker as worker_module

ONCE = Retry(max_attempts=1)


@pytest.mark.covers("CIX-92")
async def test_an_async_handler_that_takes_too_long_is_cancelled(yard: Yard) -> None:
    async with yard.working():
        (job,) = await yard.submit(node("hang", retry=ONCE))
        assert (await yard.end(job)).state is JobState.TIMEOUT
        assert (await yard.step(job)).error["code"] == "attempt_timeout"


async def test_a_thread_that_takes_too_long_is_left_and_replaced(yard: Yard) -> None:
    release = yard.folder / "release"
    async with yard.working(concurrency=1):
        (job,) = await yard.submit(node("hang_in_thread", retry=ONCE, with_={"release": str(release)}))
        assert (await yard.end(job)).state is JobState.TIMEOUT
        assert (await yard.step(job)).error["code"] == "attempt_timeout"
        # The thread still hangs, and the worker's one place is free again.
        (other,) = await yard.submit(node("add_in_thread", with_={"a": 1, "b": 1}))
        assert (await yard.end(other)).state is JobState.COMPLETED
        release.touch()


@pytest.mark.covers("COR-43")
async def test_a_thread_that_cannot_be_stopped_is_waited_for_and_then_undone(yard: Yard) -> None:
    """A thread is only asked to stop. What it does after the end of its job is undone, and not before it is done."""
    release = yard.folder / "release"
    undo = Undo("hang_in_thread", queue=yard.queue)
    async with yard.working(), yard.loops():
        (job,) = await yard.submit(node("hang_in_thread", timeout_s=60.0, with_={"release": str(release)}, undo=undo))
        await until_state(yard, job, StepState.RUNNING)
        await cancel(yard.db, job)
        undo_job = (await read.job(yard.db, job)).undo_job_id
        assert undo_job is not None
        assert (await yard.step(undo_job)).holds == Hold.ATTEMPT
        release.touch()
        assert (await yard.end(undo_job)).state is JobState.COMPLETED
    async with yard.db.connection() as connection:
        assert await connection.fetchval("SELECT state FROM windlass.undo_attempts WHERE job_id = $1", job) == "DONE"


async def test_an_attempt_that_ended_before_its_claim_was_answered_does_not_begin(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that came very late may name attempts that are over, so the worker asks which it still holds."""
    late: list[bool] = []

    async def late_claim(*args: Any, **given: Any) -> Taken:
        taken = await claim(*args, **given)
        if taken and not late:
            late.append(True)
            await settle(yard.db, [one.report(Success('"elsewhere"')) for one in taken], spread=lambda: 0.0)
            late.append(True)
        return taken

    # Only the first reply is late: the second entry is taken by the question that follows it.
    monkeypatch.setattr(worker_module, "claim", late_claim)
    monkeypatch.setattr(worker_module, "may_be_over", lambda *_: len(late) == 2 and late.pop())
    async with yard.working() as worker:
        (job,) = await yard.submit(node("add", with_={"a": 1, "b": 2}))
        assert (await yard.end(job)).state is JobState.COMPLETED
        (other,) = await yard.submit(node("add", with_={"a": 1, "b": 2}))
        assert (await yard.end(other)).state is JobState.COMPLETED
        assert worker.ended == 1, "the attempt that was over did not begin"


async def test_a_process_that_takes_too_long_is_killed(yard: Yard) -> None:
    marker = yard.folder / "marker"
    policy = Retry(max_attempts=2, base_s=0.01)
    async with yard.loops(), yard.working(processes=1):
        (job,) = await yard.submit(node("hang_in_process", retry=policy, timeout_s=4, with_={"marker": str(marker)}))
        assert (await yard.end(job)).state is JobState.COMPLETED
        step = await yard.step(job)
        assert (step.output, step.attempt, step.failures) == ("second", 2, 1)
        with pytest.raises(ProcessLookupError):
            os.kill(int(marker.read_text()), 0)


async def test_a_process_that_dies_fails_its_attempt_only(yard: Yard) -> None:
    async with yard.loops(), yard.working(processes=1):
        given = {"marker": str(yard.folder / "died")}
        (job,) = await yard.submit(node("die", retry=Retry(max_attempts=2, base_s=0.01), with_=given))
        assert (await yard.end(job)).state is JobState.COMPLETED
        retried = await yard.events(job, "step.parked")
        assert "worker_process_died" in str(retried[0].payload)


@pytest.mark.covers("SCR-85", "SCR-87")
@pytest.mark.parametrize("handler", ["wait_for_ever", "wait_until_cancelled", "wait_until_cancelled_in_process"])
async def test_a_cancelled_job_stops_its_handler(yard: Yard, handler: str) -> None:
    started, ended = yard.folder / "started", yard.folder / "ended"
    async with yard.working() as worker:
        (job,) = await yard.submit(node(handler, with_={"started": str(started), "ended": str(ended)}))
        await until(started.exists)
        assert await cancel(yard.db, job)
        await until(ended.exists)
        await until(lambda: worker.running == 0)
        assert (await yard.end(job)).state is JobState.CANCELLED
        assert (await yard.step(job)).state is StepState.CANCELLED


async def test_a_handler_that_ignores_cancellation_loses_its_place(yard: Yard) -> None:
    started, release = yard.folder / "started", yard.folder / "release"
    async with yard.working(concurrency=1, grace_s=0.1) as worker:
        stubborn = node("stubborn", timeout_s=0.1, retry=ONCE, with_={"started": str(started), "release": str(release)})
        (job,) = await yard.submit(stubborn)
        assert (await yard.end(job)).state is JobState.TIMEOUT
        assert (await yard.step(job)).error["code"] == "attempt_timeout"
        (other,) = await yard.submit(node("add_later", with_={"a": 1, "b": 1}))
        assert (await yard.end(other)).state is JobState.COMPLETED
        release.touch()
        await until(lambda: worker.running == 0)


async def test_a_worker_that_ends_waits_for_what_runs(yard: Yard) -> None:
    started, release = yard.folder / "started", yard.folder / "release"
    worker = yard.worker()
    task = asyncio.create_task(worker.run())
    given = {"started": str(started), "release": str(release)}
    (job,) = await yard.submit(node("wait_for_file", with_=given))
    await until(started.exists, task)
    worker.stop()
    # A claim that was under way when it was told to stop is waited for, and may still take something.
    await until(lambda: not any(one.get_name() == "windlass-claim" for one in asyncio.all_tasks()), task)
    (late,) = await yard.submit(node("add", with_={"a": 1, "b": 1}))
    release.touch()
    await task
    assert (await yard.end(job)).state is JobState.COMPLETED
    assert (await yard.step(late)).state is StepState.QUEUED
    assert worker.id not in {one.id for one in await workers.listing(yard.db)}


@pytest.mark.parametrize("handler", ["wait_for_ever", "wait_until_cancelled", "wait_until_cancelled_in_process"])
async def test_a_worker_that_ends_hands_back_what_takes_too_long(yard: Yard, handler: str) -> None:
    started, ended = yard.folder / "started", yard.folder / "ended"
    worker = yard.worker(drain_s=0.05)
    task = asyncio.create_task(worker.run())
    (job,) = await yard.submit(node(handler, with_={"started": str(started), "ended": str(ended)}))
    await until(started.exists, task)
    worker.stop()
    await task
    step = await yard.step(job)
    assert (step.state, step.attempt, step.failures, step.losses) == (StepState.QUEUED, 1, 0, 0)


async def test_the_second_stop_is_at_once(yard: Yard) -> None:
    started, ended = yard.folder / "started", yard.folder / "ended"
    worker = yard.worker(drain_s=3600)
    task = asyncio.create_task(worker.run())
    (job,) = await yard.submit(node("wait_for_ever", with_={"started": str(started), "ended": str(ended)}))
    await until(started.exists, task)
    worker.stop()
    worker.stop(now=True)
    await asyncio.wait_for(task, 60)
    assert Path(ended).exists()
    assert (await yard.step(job)).state is StepState.QUEUED


@pytest.mark.covers("COR-97")
async def test_a_lost_lease_abandons_everything_and_brings_a_new_one(yard: Yard) -> None:
    started, ended = yard.folder / "started", yard.folder / "ended"
    async with yard.working(lease_s=0.6) as worker:
        first = worker.id
        (job,) = await yard.submit(node("wait_for_ever", with_={"started": str(started), "ended": str(ended)}))
        await until(started.exists)
        async with yard.db.connection() as connection:
            await connection.execute("UPDATE windlass.workers SET lost_at = windlass.clock() WHERE id = $1", first)
        await until(lambda: worker.id != first and worker.ready.is_set())
        await until(ended.exists)
        assert (await yard.step(job)).attempt == 1
        (other,) = await yard.submit(node("add", with_={"a": 1, "b": 1}))
        assert (await yard.end(other)).state is JobState.COMPLETED
        await cancel(yard.db, job)


async def test_an_attempt_that_a_claim_left_behind_is_taken_up(yard: Yard) -> None:
    """The answer of a claim was lost: the database says that we run a step, and we do not."""
    worker = yard.worker()
    (job,) = await yard.submit(node("add", with_={"a": 1, "b": 1}))
    await worker._enlist()
    assert len(await claim(yard.db, worker=worker.id, queues=[yard.queue], limit=1)) == 1
    worker._is_unsure = True
    task = asyncio.create_task(worker.run())
    assert (await yard.end(job)).state is JobState.COMPLETED
    worker.stop()
    await task
    assert (await until_state(yard, job, StepState.COMPLETED)).attempt == 1


async def test_steps_that_wait_behind_a_slow_one_are_handed_back(yard: Yard) -> None:
    started, release = yard.folder / "started", yard.folder / "release"
    given = {"started": str(started), "release": str(release)}
    async with yard.working(concurrency=1) as worker:
        (slow,) = await yard.submit(node("wait_for_file", with_=given))
        await until(started.exists)
        (waiting,) = await yard.submit(node("add", with_={"a": 1, "b": 1}))
        assert worker._runner is not None
        # As a claim does that takes more than there is room for.
        worker._runner.begin(await claim(yard.db, worker=worker.id, queues=[yard.queue], limit=1))
        for _ in range(2):
            worker._runner.hand_back_waiting()
        step = await until_state(yard, waiting, StepState.QUEUED)
        assert (step.failures, step.losses) == (0, 0)
        release.touch()
        for job in (slow, waiting):
            assert (await yard.end(job)).state is JobState.COMPLETED
