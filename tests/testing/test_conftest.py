"""The fixtures that the other tests stand on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from windlass.store.database import Database
from windlass.store.migrate import check
from windlass.testing.clock import START, VirtualClock


@pytest.fixture
async def opened(db: Database) -> AsyncIterator[int]:
    async with db.connection() as connection:
        yield await connection.fetchval("SELECT 7")


async def test_an_async_test_with_an_async_fixture_runs(opened: int) -> None:
    assert opened == 7


@pytest.mark.parametrize("turn", [1, 2])
async def test_every_test_finds_an_empty_database(db: Database, turn: int) -> None:
    async with db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.plans") == 0
        await connection.execute("INSERT INTO windlass.plans (hash, body) VALUES ('x', '{}')")


async def test_the_databases_clock_is_the_tests_clock(timed_db: Database, clock: VirtualClock) -> None:
    clock.advance("2h")
    async with timed_db.connection() as connection:
        assert (await connection.fetchval("SELECT windlass.clock()") - START).total_seconds() == 7200


@pytest.mark.covers("JN-85")
async def test_a_fresh_database_is_migrated_and_its_own(fresh_dsn: str, dsn: str) -> None:
    assert fresh_dsn != dsn
    database = await Database.open(fresh_dsn)
    try:
        await check(database)
    finally:
        await database.close()


async def test_a_failing_statement_fails_the_test(db: Database) -> None:
    async with db.connection() as connection:
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.execute("SELECT * FROM nowhere")
