"""The layers between a dropped connection and a lost step."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from windlass.core.errors import BadSetting, DatabaseUnavailable
from windlass.store.database import Database
from windlass.store.outage import is_transient
from windlass.store.pool import Connection, Pool
from windlass.testing.faults import FaultyDatabase, Moment


async def kill_others(dsn: str) -> int:
    """End every other connection to this database, as a restarting server would."""
    admin = await asyncpg.connect(dsn)
    try:
        return len(
            await admin.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )
    finally:
        await admin.close()


async def test_an_operation_survives_the_loss_of_every_connection(dsn: str) -> None:
    db = await FaultyDatabase.open(dsn)
    try:
        assert await db.run(lambda c: c.fetchval("SELECT 1")) == 1
        assert await kill_others(dsn) >= 1
        assert await db.run(lambda c: c.fetchval("SELECT 2")) == 2
    finally:
        await db.close()


async def test_a_transaction_that_was_left_open_does_not_reach_the_next_user(dsn: str) -> None:
    db = await Database.open(dsn, max_size=1)
    try:

        async def half(connection: asyncpg.Connection) -> None:
            await connection.execute("BEGIN")
            await connection.execute("INSERT INTO windlass.plans (hash, body) VALUES ('half', '{}')")
            raise RuntimeError

        with pytest.raises(RuntimeError):
            await db.attempt(half)
        assert await db.run(lambda c: c.fetchval("SELECT count(*) FROM windlass.plans")) == 0
    finally:
        await db.close()


async def test_a_cancelled_operation_leaves_no_transaction_behind(dsn: str) -> None:
    db = await Database.open(dsn, max_size=1)
    try:

        async def slow(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                await connection.execute("INSERT INTO windlass.plans (hash, body) VALUES ('slow', '{}')")
                await connection.execute("SELECT pg_sleep(30)")

        task = asyncio.create_task(db.run(slow))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.wait_for(db.run(lambda c: c.fetchval("SELECT count(*) FROM windlass.plans")), 60) == 0
    finally:
        await db.close()


@pytest.mark.parametrize(
    ("dsn", "error"),
    [
        ("postgresql://localhost:1/x?connect_timeout=1", DatabaseUnavailable),
        ("postgresql:///x?host=/nowhere", DatabaseUnavailable),
        ("mysql://localhost/x", BadSetting),
    ],
)
async def test_a_database_that_cannot_be_opened_says_why_and_what_to_do(dsn: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        await Database.open(dsn)
    assert raised.value.remedy  # type: ignore[attr-defined]


async def test_a_database_that_does_not_exist_is_a_wrong_setting(dsn: str) -> None:
    with pytest.raises(BadSetting, match="does not exist"):
        await Database.open(dsn.replace("/windlass_", "/no_windlass_"))


async def test_an_error_of_the_statement_itself_is_not_tried_again(dsn: str) -> None:
    db = await FaultyDatabase.open(dsn)
    calls = []
    try:

        async def wrong(connection: asyncpg.Connection) -> None:
            calls.append(1)
            await connection.execute("SELECT nonsense")

        with pytest.raises(asyncpg.UndefinedColumnError):
            await db.run(wrong)
        assert len(calls) == 1
    finally:
        await db.close()


async def test_an_operation_that_was_rolled_back_is_done_again(dsn: str) -> None:
    db = await FaultyDatabase.open(dsn)
    try:
        put = "INSERT INTO windlass.plans (hash, body) VALUES ('once', '{}')"
        for moment in (Moment.BEFORE, Moment.INSIDE):
            db.faults.append(moment)
            await db.run(lambda c: c.execute(put))
            assert await db.run(lambda c: c.fetchval("DELETE FROM windlass.plans RETURNING 1")) == 1
    finally:
        await db.close()


async def test_a_read_without_a_server_says_that_it_is_away() -> None:
    async def connect() -> Connection:
        raise FileNotFoundError(2, "No such file or directory")

    db = Database(Pool(connect, 1), "postgresql://", None)
    with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
        async with db.connection():
            pass


@pytest.mark.parametrize(
    "error",
    [ConnectionResetError(), TimeoutError(), asyncpg.DeadlockDetectedError(""), asyncpg.DiskFullError("no space")],
)
def test_what_may_pass_is_told_from_what_will_not(error: Exception) -> None:
    assert is_transient(error)
    assert not is_transient(asyncpg.UniqueViolationError(""))
