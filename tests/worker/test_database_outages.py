"""A database that goes away costs time, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.worker.yard import Yard, node, until
from windlass.app.embedded import EmbeddedPostgres
from windlass.core.states import JobState
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.migrate import migrate


async def test_an_outcome_outlives_a_restart_of_the_database(tmp_path: Path, evaluator: Evaluator) -> None:
    started, release = tmp_path / "started", tmp_path / "release"
    with EmbeddedPostgres(tmp_path / "pg") as server:
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


async def test_cut_connections_are_made_again(yard: Yard) -> None:
    async with yard.working():
        other = await Database.open(yard.dsn)
        outside = Yard(other, yard.dsn, yard.folder, yard.artifacts, yard.evaluator)
        outside.queue = yard.queue
        for _ in range(3):
            jobs = await outside.submit(node("add_later", with_={"a": 1, "b": 2}), count=20)
            async with other.connection() as connection:
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
                )
            for job in jobs:
                assert (await outside.end(job)).state is JobState.COMPLETED
        await other.close()
