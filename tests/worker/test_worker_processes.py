"""Real worker processes: killed, stopped, and kept busy by code that holds the interpreter's lock."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from tests.worker.yard import PATIENCE_S, Yard, node, until, until_state
from windlass.core import route
from windlass.core.bell import WorkQueued
from windlass.core.states import JobState, StepState
from windlass.testing.checker import Tables, check_tables
from windlass.views import workers

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def worker_process(yard: Yard, lease_s: float) -> AsyncIterator[tuple[asyncio.subprocess.Process, UUID]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.worker.process", yard.dsn, yard.queue, str(yard.folder), str(lease_s)),
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
        yield process, UUID(line.decode().strip())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def lease_of(yard: Yard, worker: UUID) -> workers.WorkerView:
    return next(one for one in await workers.listing(yard.db) if one.id == worker)


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sorted(int(word) for task in tasks for word in (task / "children").read_text().split())


def is_there(pid: int) -> bool:
    try:
        # A zombie is dead; it only waits for its parent to look.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.covers("SCR-23", "SCR-26", "SCR-42", "SCR-56", "CIX-92", "COR-81", "JN-27", "JN-65", "JN-72")
async def test_a_killed_workers_step_runs_again_elsewhere(yard: Yard) -> None:
    started, release = yard.folder / "started", yard.folder / "release"
    given = {"started": str(started), "release": str(release)}
    async with yard.loops(), worker_process(yard, 1.0) as (process, first):
        (job,) = await yard.submit(node("wait_for_file", with_=given))
        await until(started.exists)
        process.kill()
        await process.wait()
        release.touch()
        async with yard.working():
            assert (await yard.end(job)).state is JobState.COMPLETED
        step = await yard.step(job)
        assert (step.attempt, step.losses, step.failures) == (2, 1, 0)
        assert (await lease_of(yard, first)).lost_at is not None


async def test_the_heartbeat_rings_for_what_it_hands_back(yard: Yard) -> None:
    """Idle workers look by themselves only every few seconds. No engine and no other worker rings here."""
    started, heard = yard.folder / "started", asyncio.Event()
    given = {"started": str(started), "release": str(yard.folder / "release")}
    async with worker_process(yard, 15.0) as (process, _):
        await yard.submit(node("wait_for_file", with_=given))
        await until(started.exists)
        await yard.db.listen(WorkQueued, lambda bell: heard.set() if yard.queue in bell.queues else None)
        process.kill()
        await process.wait()
        await asyncio.wait_for(heard.wait(), PATIENCE_S)


async def test_what_a_worker_started_ends_with_it(yard: Yard) -> None:
    started, ended = yard.folder / "started", yard.folder / "ended"
    async with worker_process(yard, 15.0) as (process, _):
        given = {"started": str(started), "ended": str(ended)}
        await yard.submit(node("wait_until_cancelled_in_process", with_=given))
        await until(started.exists)
        children = children_of(process.pid)
        assert len(children) >= 2  # the heartbeat, and the process of the handler
        process.kill()
        await process.wait()
        await until(lambda: not any(map(is_there, children)))


@pytest.mark.covers("COR-76")
async def test_a_worker_whose_lock_is_held_is_not_taken_for_dead(yard: Yard) -> None:
    started = yard.folder / "started"
    async with yard.loops(), worker_process(yard, 1.0) as (_, worker):
        (job,) = await yard.submit(node("hold_the_lock", with_={"seconds": 3, "started": str(started)}))
        await until(started.exists)
        assert (await yard.end(job)).state is JobState.COMPLETED
        step = await yard.step(job)
        assert (step.attempt, step.losses) == (1, 0)
        assert (await lease_of(yard, worker)).lost_at is None


@pytest.mark.covers("CIX-112")
async def test_a_stopped_worker_is_replaced_and_its_late_report_refused(yard: Yard) -> None:
    started, release = yard.folder / "started", yard.folder / "release"
    given = {"started": str(started), "release": str(release)}
    async with yard.loops(), worker_process(yard, 1.0) as (process, first):
        (job,) = await yard.submit(node("wait_for_file", with_=given))
        await until(started.exists)
        process.send_signal(signal.SIGSTOP)
        started.unlink()
        async with yard.working():
            await until(started.exists)
            release.touch()
            # The stopped one comes back and finds its file too: it must not be heard.
            process.send_signal(signal.SIGCONT)
            assert (await yard.end(job)).state is JobState.COMPLETED
            step = await yard.step(job)
            assert (step.attempt, step.losses) == (2, 1)
            assert len(await yard.events(job, "step.completed")) == 1
            assert (await lease_of(yard, first)).lost_at is not None
        # It lives on, under a new lease.
        await until_others(yard, first, process.pid)


async def until_others(yard: Yard, first: UUID, pid: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not any(one.pid == pid and one.id != first for one in await workers.listing(yard.db)):
            await asyncio.sleep(0.05)


@pytest.mark.covers("COR-96")
async def test_sigterm_drains_and_leaves(yard: Yard) -> None:
    started, release = yard.folder / "started", yard.folder / "release"
    async with worker_process(yard, 15.0) as (process, worker):
        given = {"started": str(started), "release": str(release)}
        (job,) = await yard.submit(node("wait_for_file", with_=given))
        await until(started.exists)
        process.terminate()
        await asyncio.sleep(0.2)
        assert (await yard.step(job)).state is StepState.RUNNING
        release.touch()
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), PATIENCE_S) == b"ended\n"
        assert await process.wait() == 0
        assert (await until_state(yard, job, StepState.COMPLETED)).attempt == 1
        assert worker not in {one.id for one in await workers.listing(yard.db)}


async def test_a_heartbeat_that_dies_is_started_again(yard: Yard) -> None:
    async with worker_process(yard, 6.0) as (process, worker):
        (heartbeat,) = children_of(process.pid)
        before = await lease_of(yard, worker)
        os.kill(heartbeat, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            while (await lease_of(yard, worker)).lease_until <= before.lease_until:
                await asyncio.sleep(0.05)
        assert children_of(process.pid) != [heartbeat]
        assert (await lease_of(yard, worker)).lost_at is None


async def test_fan_outs_of_many_batches_end_after_their_last_child(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The children of one batch end, alone and together, while the router still adds the next."""
    monkeypatch.setattr(route, "FAN_BATCH_MAX", 5)
    fan = node("add", "fan", each="inputs.items", with_={"a": "${item}", "b": 1})
    total = node("total", needs=("fan",), with_={"numbers": "${steps.fan.outputs}"})
    items = list(range(300))
    async with worker_process(yard, 15.0), worker_process(yard, 15.0), yard.loops():
        jobs = []
        for _ in range(5):
            [job] = await yard.submit(fan, total, inputs={"items": items})
            jobs.append(job)
            assert (await yard.waiter.wait(job, 120.0)).state is JobState.COMPLETED
            assert (await yard.step(job, 1)).output == sum(items) + len(items)
    async with yard.db.connection() as connection:
        tables = await Tables.read(connection)
    tables.jobs = {job: row for job, row in tables.jobs.items() if job in jobs}
    assert check_tables(tables, is_serial=False) == []
