"""A server that is read-only for a while: finished results are kept, and the loops wait quietly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worker.yard import Yard, node, until
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.core.states import JobState
from windlass.engine import workers
from windlass.engine.loops.runner import Loops
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.migrate import migrate
from windlass.testing.faults import set_read_only


@pytest.fixture
async def own_yard(tmp_path: Path, evaluator: Evaluator) -> AsyncIterator[Yard]:
    """A yard with a server of its own, which may be made read-only."""
    # Not in pytest's folder, which the server's user may not enter while other tests run.
    with EmbeddedPostgres(durable=False) as server:
        db = await Database.open(server.dsn)
        await migrate(db)
        yield Yard(db, server.dsn, tmp_path, FolderArtifacts(tmp_path / "artifacts"), evaluator)
        await db.close()


async def test_results_that_were_ready_while_the_server_was_read_only_arrive_as_attempt_one(
    own_yard: Yard, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    started, release = tmp_path / "started", tmp_path / "release"
    caplog.set_level(logging.WARNING)
    async with own_yard.working(lease_s=120) as worker, own_yard.loops():
        (job,) = await own_yard.submit(
            node("wait_for_file", with_={"started": str(started), "release": str(release)}),
            node("add", with_={"a": 1, "b": 1}, needs=("wait_for_file",)),
        )
        await until(started.exists)
        await set_read_only(own_yard.dsn, True)
        release.touch()
        await until(lambda: worker.running == 0)
        # The settler has met the outage several times over, with results in hand.
        await until(lambda: "reporting outcomes cannot continue" in caplog.text)
        assert (await own_yard.step(job)).state == "RUNNING"
        await set_read_only(own_yard.dsn, False)
        assert (await own_yard.end(job)).state is JobState.COMPLETED
        assert [(await own_yard.step(job, no)).attempt for no in (0, 1)] == [1, 1]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_the_loops_wait_for_a_read_only_server_with_one_warning(
    own_yard: Yard, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING)
    # A lease that has run out is due all the time.
    await workers.enlist(own_yard.db, own_yard.ids.new(), host="h", pid=1, queues=["q"], concurrency=1, lease_s=0.0)
    await set_read_only(own_yard.dsn, True)
    monkeypatch.setattr(own_yard.db, "_pause", lambda _: asyncio.sleep(0))
    turns = 0
    looked = Loops.look

    async def counted(loops: Loops) -> float:
        nonlocal turns
        turns += 1
        return await looked(loops)

    monkeypatch.setattr(Loops, "look", counted)
    async with own_yard.loops():
        await until(lambda: turns > 3)
        await set_read_only(own_yard.dsn, False)
        await until(lambda: "the engine continues" in caplog.text)
    told = [record for record in caplog.records if record.name == "windlass.engine"]
    assert [record.levelname for record in told] == ["WARNING", "WARNING"]
    assert "read-only" in told[0].getMessage()
