"""Several applications, or several versions of one, share a queue: each worker claims what it can run."""

from __future__ import annotations

from tests.worker.handlers import STEPS
from tests.worker.yard import Yard, node, until, until_state
from windlass.core.states import JobState, StepState
from windlass.views.explain import why

JOBS = 30


async def test_two_applications_on_one_queue_never_take_each_others_steps(yard: Yard) -> None:
    add, later = {"add": STEPS["add"]}, {"add_later": STEPS["add_later"]}
    async with yard.working(steps=add) as first, yard.working(steps=later) as second:
        jobs = [
            (job, worker.id)
            for name, worker in (("add", first), ("add_later", second))
            for job in await yard.submit(node(name, with_={"a": 1, "b": 2}), count=JOBS)
        ]
        for job, worker in jobs:
            assert (await yard.end(job)).state is JobState.COMPLETED
            [running] = await yard.events(job, "step.running")
            assert running.payload == {"worker": str(worker)}
            assert await yard.events(job, "step.parked") == []


async def test_a_step_that_a_deployment_adds_waits_for_the_first_new_worker(yard: Yard) -> None:
    async with yard.working(steps={"add": STEPS["add"]}):
        (job,) = await yard.submit(
            node("add", with_={"a": 1, "b": 2}), node("add_later", with_={"a": 1, "b": 2}, needs=("add",))
        )
        step = await until_state(yard, job, StepState.QUEUED, no=1)
        assert step.attempt == 0
        [reason] = await why(yard.db, job)
        assert "has the handler add_later; no worker has had it yet" in reason.because
        async with yard.working():
            assert (await yard.end(job)).state is JobState.COMPLETED
        assert (await yard.step(job, 1)).attempt == 1


async def test_a_worker_that_was_marked_as_lost_learns_it_from_a_claim_and_enlists_anew(yard: Yard) -> None:
    # Its heartbeat will not beat for a long time.
    async with yard.working(lease_s=3600) as worker:
        before = worker.id
        lost = "UPDATE windlass.workers SET lost_at = windlass.clock() WHERE id = $1"
        await yard.db.run(lambda connection: connection.execute(lost, before))
        (job,) = await yard.submit(node("add", with_={"a": 1, "b": 2}))
        assert (await yard.end(job)).state is JobState.COMPLETED
        await until(lambda: worker.id != before)
        step = await yard.step(job)
        assert (step.attempt, step.losses) == (1, 0)
