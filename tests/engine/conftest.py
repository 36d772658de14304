from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.engine.rig import Rig
from windlass.app.entropy import Ids
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock
from windlass.testing.faults import FaultyDatabase


@pytest.fixture
async def rig(timed_db: Database, clock: VirtualClock, ids: Ids, artifacts: FolderArtifacts) -> Rig:
    made = Rig(timed_db, clock, ids, artifacts)
    await made.enlist()
    return made


@pytest.fixture
async def faulty(dsn: str, clock: VirtualClock) -> AsyncIterator[FaultyDatabase]:
    """A database whose connections break when the test says so."""
    database = await FaultyDatabase.open(dsn, now=clock.now)
    yield database
    await database.close()


@pytest.fixture
async def shaky(faulty: FaultyDatabase, clock: VirtualClock, ids: Ids, artifacts: FolderArtifacts) -> Rig:
    """A rig on the database whose connections break."""
    made = Rig(faulty, clock, ids, artifacts)
    await made.enlist()
    return made
