"""The schema comes about in one way, however many processes bring it about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.store.catalog import SNAPSHOT, catalog
from windlass.core.errors import BadSetting
from windlass.store import migrate as migrations
from windlass.store.database import Database
from windlass.store.migrate import check, known, migrate, missing
from windlass.testing.postgres import fresh_database

NAMES = [name for name, _ in known()]


@pytest.fixture
async def bare_dsn() -> str:
    return await fresh_database(migrated=False)


@pytest.fixture
async def bare(bare_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(bare_dsn)
    yield database
    await database.close()


async def test_migrating_twice_does_nothing_the_second_time(bare: Database) -> None:
    assert await missing(bare) == NAMES
    assert await migrate(bare) == NAMES
    assert await migrate(bare) == []
    assert await missing(bare) == []


async def test_processes_that_start_at_once_apply_each_migration_once(bare_dsn: str) -> None:
    databases = [await Database.open(bare_dsn) for _ in range(6)]
    try:
        applied = await asyncio.gather(*(migrate(database) for database in databases))
    finally:
        for database in databases:
            await database.close()
    assert sorted(name for names in applied for name in names) == sorted(NAMES)


async def test_the_schema_is_what_the_snapshot_says(bare: Database, bare_dsn: str) -> None:
    await migrate(bare)
    found = await catalog(bare_dsn)
    assert found == SNAPSHOT.read_text(), "run `python -m tests.store.catalog` if the change is meant"


async def test_one_migration_at_a_time_comes_to_the_same_schema(
    bare: Database, bare_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = known()
    for count in range(1, len(everything) + 1):
        monkeypatch.setattr(migrations, "known", lambda count=count: everything[:count])
        assert await migrate(bare) == [everything[count - 1][0]]
    assert await catalog(bare_dsn) == SNAPSHOT.read_text()


async def test_a_migration_that_fails_leaves_nothing_behind(
    bare: Database, bare_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [*known(), ("9999_broken", "CREATE TABLE windlass.half (a int); SELECT 1 / 0")]
    monkeypatch.setattr(migrations, "known", lambda: broken)
    with pytest.raises(Exception, match="division by zero"):
        await migrate(bare)
    assert await catalog(bare_dsn) == "\n"


async def test_a_database_that_is_behind_is_refused(bare: Database) -> None:
    with pytest.raises(BadSetting, match="windlass db migrate"):
        await check(bare)
    await migrate(bare)
    await check(bare)


async def test_a_database_that_is_ahead_is_refused(bare: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = known()
    monkeypatch.setattr(migrations, "known", lambda: [*everything, ("9999_later", "SELECT 1")])
    await migrate(bare)
    monkeypatch.setattr(migrations, "known", lambda: everything)
    for look in (check, migrate):
        with pytest.raises(BadSetting, match="newer than this release; unknown here: 9999_later"):
            await look(bare)
