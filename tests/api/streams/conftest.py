from __future__ import annotations

import pytest

from tests.engine.rig import Rig
from windlass.app.entropy import Ids
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock


@pytest.fixture
async def rig(db: Database, clock: VirtualClock, ids: Ids, artifacts: FolderArtifacts) -> Rig:
    made = Rig(db, clock, ids, artifacts)
    await made.enlist()
    return made
