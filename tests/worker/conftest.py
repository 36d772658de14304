"""One throwaway PostgreSQL for the worker's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.worker.yard import Yard, play
from windlass.app.embedded import EmbeddedPostgres
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.migrate import migrate


@pytest.fixture(scope="session")
def worker_dsn() -> Iterator[str]:
    with EmbeddedPostgres(durable=False) as server:

        async def prepare() -> None:
            db = await Database.open(server.dsn)
            await migrate(db)
            await db.close()

        asyncio.run(prepare())
        yield server.dsn


@pytest.fixture
def on_yard(worker_dsn: str, tmp_path: Path) -> Callable[[Callable[[Yard], Coroutine[Any, Any, None]]], None]:
    """Run a coroutine function that takes a yard."""

    @asynccontextmanager
    async def yard() -> AsyncIterator[Yard]:
        db = await Database.open(worker_dsn)
        evaluator = Evaluator()
        try:
            yield Yard(db, worker_dsn, tmp_path, FolderArtifacts(tmp_path / "artifacts"), evaluator)
        finally:
            evaluator.close()
            await db.close()

    return lambda scene: play(yard, scene)
