from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.rig import Rig, rig


@pytest.fixture
async def api(dsn: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig(dsn, tmp_path) as made:
        yield made
