"""What the tests of providers are given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.providers.ground import Ground, ground
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts


@pytest.fixture
async def on(dsn: str, tmp_path: Path, evaluator: Evaluator, artifacts: FolderArtifacts) -> AsyncIterator[Ground]:
    """A provider, an engine and its workers."""
    async with ground(dsn, tmp_path, evaluator, artifacts) as made:
        yield made
