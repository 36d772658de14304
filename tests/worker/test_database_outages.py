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


def test_an_outcome_outlives_a_restart_of_the_database(tmp_path: Path) -> None:
    async def scene(server: EmbeddedPostgres) -> None:
        db = await Database.open(server.dsn)
        await migrate(db)
        yard = Yard(db, server.dsn, tmp_path, FolderArtifacts(tmp_path / "artifacts"), Evaluator())
        started, release = tmp_path / "started", tmp_path / "release"
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
        yard.evaluator.close()
        await db.close()

    with EmbeddedPostgres(tmp_path / "pg") as server:
        asyncio.run(scene(server))


def test_cut_connections_are_made_again(tmp_path: Path, worker_dsn: str) -> None:
    async def scene() -> None:
        db, other = await Database.open(worker_dsn), await Database.open(worker_dsn)
        yard = Yard(db, worker_dsn, tmp_path, FolderArtifacts(tmp_path / "artifacts"), Evaluator())
        async with yard.working():
            for _ in range(3):
                async with other.connection() as connection:
                    await connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE pid <> pg_backend_pid() AND application_name = 'windlass'"
                    )
                    yard_again = Yard(other, worker_dsn, tmp_path, yard.artifacts, yard.evaluator)
                    yard_again.queue = yard.queue
                for job in await yard_again.submit(node("add_later", with_={"a": 1, "b": 2}), count=20):
                    assert (await yard_again.end(job)).state is JobState.COMPLETED
        yard.evaluator.close()
        await db.close()
        await other.close()

    asyncio.run(scene())
