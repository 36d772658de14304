"""Steps that kill their worker, and the steps beside them; with real processes."""

from __future__ import annotations

import asyncio
import contextlib
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.worker.yard import Yard, node, until
from windlass.app.entropy import Ids
from windlass.core.errors import BadSetting
from windlass.core.outcome import Lost, Report
from windlass.core.retry import LOSSES_MAX
from windlass.core.states import JobState, StepState
from windlass.engine import workers
from windlass.engine.claim import claim
from windlass.engine.settle import settle
from windlass.views import explain, read
from windlass.views import workers as worker_views
from windlass.worker.apart import Program
from windlass.worker.worker import Worker

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
# So long that nothing here waits for it: what is seen earlier was handed back by the heartbeat process.
LEASE_S = 600.0


class Restarter:
    """Keeps worker processes running, as a service manager does."""

    def __init__(self, yard: Yard, count: int, concurrency: int, module: str) -> None:
        self._module = module
        self._given = (yard.dsn, yard.queue, str(yard.folder), str(LEASE_S), str(concurrency))
        self._tasks = [asyncio.create_task(self._keep()) for _ in range(count)]
        self.processes: set[asyncio.subprocess.Process] = set()
        self.deaths = 0

    async def _keep(self) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", self._module, *self._given), stdout=subprocess.DEVNULL, cwd=ROOT
            )
            self.processes.add(process)
            await process.wait()
            self.processes.discard(process)
            self.deaths += 1

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        await asyncio.gather(*(process.wait() for process in self.processes))


@asynccontextmanager
async def restarted(
    yard: Yard, count: int = 1, concurrency: int = 40, module: str = "tests.worker.served"
) -> AsyncIterator[Restarter]:
    restarter = Restarter(yard, count, concurrency, module)
    try:
        yield restarter
    finally:
        await restarter.stop()


async def ends(yard: Yard, jobs: list[Any]) -> list[read.JobView]:
    return await asyncio.gather(*(yard.waiter.wait(job, PATIENCE_S) for job in jobs))


@pytest.mark.parametrize(
    ("how", "told"),
    [("kill", "signal 9 (SIGKILL)"), ("exit", "exit code 7"), ("segv", "signal 11 (SIGSEGV)")],
)
async def test_a_poisonous_step_fails_alone_with_its_evidence(yard: Yard, how: str, told: str) -> None:
    calm = await yard.submit(node("nap", with_={"seconds": 0.05}), count=30)
    (bad,) = await yard.submit(node("poison", with_={"how": how}))
    calm += await yard.submit(node("nap", with_={"seconds": 0.05}), count=30)
    async with restarted(yard, count=2):
        failed, *others = await ends(yard, [bad, *calm])
    assert [one.state for one in others] == [JobState.COMPLETED] * 60
    assert failed.state is JobState.FAILED and failed.error["code"] == "worker_lost"
    message = failed.error["message"]
    assert f"{told} while it ran this step alone, 3 times; peak memory " in message
    assert f"about to end by {how}" in failed.error["detail"]
    step = await yard.step(bad)
    assert (step.losses, step.failures) == (LOSSES_MAX, 0)
    (reason,) = await explain.why(yard.db, bad)
    assert message in reason.because
    innocent = [await yard.step(job) for job in calm]
    assert all(step.losses <= 2 and step.failures == 0 for step in innocent)


async def test_a_worker_that_is_killed_again_and_again_fails_no_step(yard: Yard) -> None:
    jobs = await yard.submit(
        node("wait_for_file", with_={"started": str(yard.folder / "started"), "release": str(yard.folder / "release")}),
        count=20,
    )
    async with restarted(yard, concurrency=10) as restarter:
        for _ in range(6):
            await until(lambda: bool(restarter.processes))
            (process,) = restarter.processes
            # Something runs: in the worker itself or, once all are suspects, in the process that it started.
            await until_running(yard, jobs)
            process.kill()
            await process.wait()
            await until(lambda gone=process: gone not in restarter.processes)  # type: ignore[misc]
        (yard.folder / "release").touch()
        found = await ends(yard, jobs)
    assert {one.state for one in found} == {JobState.COMPLETED}
    steps = [await yard.step(job) for job in jobs]
    assert all(step.failures == 0 and step.losses <= LOSSES_MAX for step in steps)


async def until_running(yard: Yard, jobs: list[Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not any([(await yard.step(job)).state is StepState.RUNNING for job in jobs]):
            await asyncio.sleep(0.02)


async def test_steps_that_never_began_are_charged_with_nothing(yard: Yard) -> None:
    given = {"started": str(yard.folder / "started"), "release": str(yard.folder / "release")}
    (begun,) = await yard.submit(node("wait_for_file", with_=given))
    async with restarted(yard, concurrency=1) as restarter:
        await until((yard.folder / "started").exists)
        (process,) = restarter.processes
        (worker,) = [one for one in await worker_views.listing(yard.db) if one.pid == process.pid]
        # What a worker takes in hand beyond what it can run.
        waiting = await yard.submit(node("nap", with_={"seconds": 0}), count=3)
        assert len(await claim(yard.db, worker=worker.id, queues=[yard.queue], limit=3)) == 3
        process.kill()
        (yard.folder / "release").touch()
        await ends(yard, [begun, *waiting])
    charged = [await yard.step(job) for job in waiting]
    assert [(step.attempt, step.losses) for step in charged] == [(2, 0)] * 3
    step = await yard.step(begun)
    assert (step.attempt, step.losses) == (2, 1)
    assert {event.source for event in await yard.events(begun, "step.queued") if event.payload} == {"heartbeat"}
    assert next(one for one in await worker_views.listing(yard.db) if one.id == worker.id).lost_at is not None


async def test_where_no_process_can_be_started_suspects_run_alone_in_the_worker_itself(yard: Yard) -> None:
    # Few, because each halving of the suspects is one more worker that must start.
    calm = await yard.submit(node("nap", with_={"seconds": 0.05}), count=5)
    (bad,) = await yard.submit(node("poison", with_={"how": "exit"}))
    async with restarted(yard, module="tests.worker.process"):
        failed, *others = await ends(yard, [bad, *calm])
    assert {one.state for one in others} == {JobState.COMPLETED}
    assert failed.error["code"] == "worker_lost"
    assert failed.error["message"] == "the worker process died while it ran this step alone, 3 times"


async def suspect(yard: Yard) -> UUID:
    """A job whose step was lost twice."""
    (job,) = await yard.submit(node("nap", with_={"seconds": 0}))
    worker = yard.ids.new()
    await workers.enlist(yard.db, worker, host="h", pid=1, queues=[yard.queue], concurrency=1)
    for _ in range(2):
        (taken,) = await claim(yard.db, worker=worker, queues=[yard.queue], limit=1)
        await settle(yard.db, [Report(job, 0, taken.attempt, Lost(1))], spread=random.random)
    return job


async def test_a_process_that_cannot_start_leaves_the_suspects_to_the_worker(yard: Yard) -> None:
    program = Program("tests.worker.no_such_module", lambda _queues, _begun: b"")
    job = await suspect(yard)
    async with yard.working(program=program) as worker:
        assert (await yard.waiter.wait(job, PATIENCE_S)).state is JobState.COMPLETED
        assert worker.ended == 1


async def test_a_worker_of_suspects_runs_one_at_a_time() -> None:
    with pytest.raises(BadSetting, match="one at a time"):
        Worker(**dict.fromkeys(("db", "steps", "artifacts", "resolver", "spread")), ids=Ids(), queues=["q!"])


async def test_a_suspect_that_waits_says_that_it_runs_apart(yard: Yard) -> None:
    job = await suspect(yard)
    (reason,) = await explain.why(yard.db, job)
    told = "waits for its turn; 0 ahead of it; it runs apart, because workers died while they ran it (2 times)"
    assert (reason.state, reason.because) == (StepState.QUEUED, told)
    async with yard.working():
        assert (await yard.end(job)).state is JobState.COMPLETED
    assert (await yard.step(job)).losses == 2
