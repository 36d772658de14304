"""A database that goes away under open streams is silence, and nothing is lost to it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.api.streams.script import finish, submit, told
from tests.api.streams.stage import staged
from tests.engine.rig import Rig
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.app.entropy import Ids
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.migrate import migrate
from windlass.testing.clock import VirtualClock
from windlass.views import read


@pytest.fixture
def server(server_folder: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(server_folder / "pg") as made:
        yield made


@pytest.fixture
async def own(server: EmbeddedPostgres, clock: VirtualClock, ids: Ids, tmp_path: Path) -> AsyncIterator[Rig]:
    db = await Database.open(server.dsn)
    await migrate(db)
    made = Rig(db, clock, ids, FolderArtifacts(tmp_path / "artifacts"))
    await made.enlist()
    yield made
    await db.close()


@pytest.mark.slow
async def test_streams_outlive_a_restart_of_the_database(own: Rig, server: EmbeddedPostgres) -> None:
    async with staged(own.db, heartbeat_s=0.2) as stage:
        job = await submit(own)
        jobs, one = await stage.feed(), await stage.job(job)
        start = jobs.last_id
        await asyncio.to_thread(server.stop)
        silent = jobs.heartbeats
        await jobs.until(lambda: jobs.heartbeats > silent + 2)
        await asyncio.to_thread(server.start)
        await own.enlist()
        await finish(own)
        await one.to_the_end()
        await jobs.until(lambda: len(jobs.ids) == 2)
        assert jobs.ids == (await told(own.db))[1:]
        assert one.frames[-1].event == "end"
        again = await stage.feed(start)
        await again.until(lambda: len(again.ids) == 2)
        assert again.ids == jobs.ids


@pytest.mark.slow
async def test_what_was_told_of_a_claim_outlives_a_crash_of_the_database(own: Rig, server: EmbeddedPostgres) -> None:
    async with staged(own.db) as stage:
        job = await submit(own)
        jobs, one = await stage.feed(), await stage.job(job)
        assert len(await own.claim()) == 1
        await jobs.until(lambda: len(jobs.ids) == 1)
        await one.until(lambda: one.frames[-1].data.get("type") == "step.running")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.to_thread(_revived, server)
        assert jobs.ids[-1] in await told(own.db)
        assert one.ids == [str(event.seq) for event in await read.events(own.db, job)]
        second = await submit(own)
        await jobs.until(lambda: jobs.frames[-1].data.get("job_id") == str(second))
        assert jobs.ids == (await told(own.db))[1:]


def _revived(server: EmbeddedPostgres) -> None:
    server.stop()
    server.start()
