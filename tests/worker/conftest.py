"""What the worker's tests are given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worker.yard import Yard
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database


@pytest.fixture
async def yard(dsn: str, tmp_path: Path, evaluator: Evaluator) -> AsyncIterator[Yard]:
    db = await Database.open(dsn)
    try:
        yield Yard(db, dsn, tmp_path, FolderArtifacts(tmp_path / "artifacts"), evaluator)
    finally:
        await db.close()
