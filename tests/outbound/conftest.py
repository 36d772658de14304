from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.rig import Rig
from tests.outbound.receiver import Receiver, receiving
from tests.outbound.rig import Hooks
from windlass.app.entropy import Ids
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock


@pytest.fixture
async def hooks(timed_db: Database, clock: VirtualClock, ids: Ids, artifacts: FolderArtifacts) -> Hooks:
    rig = Rig(timed_db, clock, ids, artifacts)
    await rig.enlist()
    made = Hooks(rig)
    await made.scheduler.run_once()
    return made


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(tmp_path / "journal") as made:
        yield made
