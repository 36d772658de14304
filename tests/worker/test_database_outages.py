"""A database that goes away costs time, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from tests.worker.yard import PATIENCE_S, Yard, node, until
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.core.bell import WorkQueued
from windlass.core.states import JobState
from windlass.engine import claim as claims
from windlass.engine.claim import Claimed
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.migrate import migrate
from windlass.views import read
from windlass.worker import worker as module

LEASE_S = 3.0
CUT_CONNECTIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


@pytest.mark.covers("CIX-114", "COR-100", "COR-108")
async def test_an_outcome_outlives_a_restart_of_the_database(
    tmp_path: Path, server_folder: Path, evaluator: Evaluator
) -> None:
    started, release = tmp_path / "started", tmp_path / "release"
    with EmbeddedPostgres(server_folder / "pg") as server:
        db = await Database.open(server.dsn)
        await migrate(db)
        yard = Yard(db, server.dsn, tmp_path, FolderArtifacts(tmp_path / "artifacts"), evaluator)
        async with yard.working(lease_s=60) as worker:
            (job,) = await yard.submit(
                node("wait_for_file", with_={"started": str(started), "release": str(release)}),
                node("add", with_={"a": 1, "b": 1}, needs=("wait_for_file",)),
            )
            await until(started.exists)
            await asyncio.to_thread(server.stop)
            release.touch()
            await until(lambda: worker.running == 0)
            await asyncio.to_thread(server.start)
            assert (await yard.end(job)).state is JobState.COMPLETED
            assert [(await yard.step(job, no)).attempt for no in (0, 1)] == [1, 1]
        await db.close()


async def test_an_outage_longer_than_a_lease_costs_no_attempt(
    tmp_path: Path, server_folder: Path, evaluator: Evaluator
) -> None:
    started, release = tmp_path / "started", tmp_path / "release"
    with EmbeddedPostgres(server_folder / "pg") as server:
        db = await Database.open(server.dsn)
        await migrate(db)
        yard = Yard(db, server.dsn, tmp_path, FolderArtifacts(tmp_path / "artifacts"), evaluator)
        async with yard.loops(), yard.working(lease_s=LEASE_S, heartbeat="process", dsn=server.dsn) as worker:
            (job,) = await yard.submit(
                node("wait_for_file", with_={"started": str(started), "release": str(release)}),
            )
            await until(started.exists)
            before = worker.id
            await asyncio.to_thread(server.stop)
            # The length of the outage, not a wait for something to happen.
            await asyncio.sleep(3 * LEASE_S)
            await asyncio.to_thread(server.start)
            await _until_renewed(db, before)
            release.touch()
            assert (await yard.end(job)).state is JobState.COMPLETED
            assert (await yard.step(job)).attempt == 1
            assert worker.id == before
        await db.close()


async def _until_renewed(db: Database, worker: UUID) -> None:
    """Wait until the worker has renewed its lease after the outage, and an engine has looked at the leases."""
    query = (
        "SELECT w.seen_at > pg_postmaster_start_time() AND i.looked_at > pg_postmaster_start_time()"
        " FROM windlass.workers w, windlass.installation i WHERE w.id = $1"
    )
    while not await db.run(lambda connection: connection.fetchval(query, worker)):
        await asyncio.sleep(0.05)


@pytest.mark.covers("SCR-83")
async def test_cut_connections_are_made_again(yard: Yard) -> None:
    async with yard.working():
        other = await Database.open(yard.dsn)
        outside = Yard(other, yard.dsn, yard.folder, yard.artifacts, yard.evaluator)
        outside.queue = yard.queue
        for _ in range(3):
            jobs = await outside.submit(node("add_later", with_={"a": 1, "b": 2}), count=20)
            async with other.connection() as connection:
                await connection.execute(CUT_CONNECTIONS)
            for job in jobs:
                assert (await outside.end(job)).state is JobState.COMPLETED
        await other.close()


async def _completed(yard: Yard) -> UUID:
    """Run a job of one step to its end."""
    (job,) = await yard.submit(node("add", with_={"a": 1, "b": 2}))
    assert (await yard.end(job)).state is JobState.COMPLETED
    return job


async def _lose_result(dsn: str, job: UUID, worker: UUID, *, cuts_connections: bool = False) -> None:
    """Leave the job as a promoted standby has it that got the claim and not the result."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "UPDATE windlass.jobs SET state = 'PROCESSING', steps_open = 1, finished_at = NULL, version = version - 1,"
        f" event_seq = event_seq - 2 WHERE id = '{job}';"
        "UPDATE windlass.steps SET state = 'RUNNING', finished_at = NULL, output = NULL,"
        f" worker = '{worker}', wake_at = now() + interval '1 hour' WHERE job_id = '{job}';"
        f"DELETE FROM windlass.events WHERE job_id = '{job}' AND type IN ('step.completed', 'job.completed')"
    )
    if cuts_connections:
        await connection.execute(CUT_CONNECTIONS)
    await connection.close()


async def test_a_poll_finds_an_attempt_that_the_idle_worker_does_not_know(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_S", 0.2)
    async with yard.working(lease_s=60) as worker:
        job = await _completed(yard)
        await _lose_result(yard.dsn, job, worker.id)
        assert (await yard.end(job)).state is JobState.COMPLETED
        assert ((await yard.step(job)).attempt, (await yard.step(job)).output) == (1, 3)


async def test_a_check_during_a_look_for_held_attempts_is_not_forgotten(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`held` skips an attempt that ended while it was asked. The check that names the attempt must count."""
    asked = 0

    async def held(db: Database, worker_id: UUID) -> list[Claimed]:
        nonlocal asked
        asked += 1
        found = await claims.held(db, worker_id)
        if asked == 1:
            await _lose_result(yard.dsn, job, worker_id)
            await worker._check()
        return found

    monkeypatch.setattr(module, "held", held)
    async with yard.working(lease_s=60) as worker:
        job = await _completed(yard)
        worker._is_unsure = True
        worker._on_work(WorkQueued())
        await until(lambda: asked == 2)
        assert (await yard.end(job)).state is JobState.COMPLETED


async def test_a_result_that_a_failover_lost_after_it_was_acknowledged_is_made_again(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_S", 0.2)
    async with yard.working(lease_s=60) as worker:
        job = await _completed(yard)
        await _lose_result(yard.dsn, job, worker.id, cuts_connections=True)
        # A read on a connection that was just cut is refused, so the test reads on new ones.
        outside = await Database.open(yard.dsn)
        try:
            assert (await read.Waiter(outside).wait(job, PATIENCE_S)).state is JobState.COMPLETED
            (step,) = await read.steps(outside, job)
        finally:
            await outside.close()
        assert (step.attempt, step.output) == (1, 3)
