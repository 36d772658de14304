"""Which errors are outages, what they are called, and what becomes of the connections."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import asyncpg
import pytest

from windlass.core.errors import DatabaseUnavailable
from windlass.store import outage as module
from windlass.store.database import Database
from windlass.store.outage import AWAY, DISK_FULL, OUTAGES, READ_ONLY, OutageLog, outage_of
from windlass.testing.faults import FaultyDatabase


def raised_by_the_driver() -> Iterator[type[asyncpg.PostgresError]]:
    """Every class of error that the driver knows, with its SQLSTATE."""
    for name in sorted(dir(asyncpg)):
        kind = getattr(asyncpg, name)
        if isinstance(kind, type) and issubclass(kind, asyncpg.PostgresError) and kind.sqlstate:
            yield kind


def test_the_table_names_only_states_that_there_are() -> None:
    # transaction_timeout came with PostgreSQL 17, idle_session_timeout with 14: the driver has no class for them.
    states = {kind.sqlstate for kind in raised_by_the_driver()} | {"25P04", "57P05", "08"}
    assert set(OUTAGES) <= states


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (asyncpg.ReadOnlySQLTransactionError("x"), READ_ONLY),
        (asyncpg.TargetServerAttributeNotMatched("x"), READ_ONLY),
        (asyncpg.InternalServerError("cannot assign TransactionIds during recovery"), READ_ONLY),
        (asyncpg.DiskFullError("x"), DISK_FULL),
        (asyncpg.ConnectionDoesNotExistError("x"), AWAY),
        (ConnectionResetError(), AWAY),
        (TimeoutError(), AWAY),
        (asyncpg.QueryCanceledError("x"), OUTAGES["57014"]),
        (asyncpg.LockNotAvailableError("x"), OUTAGES["55P03"]),
        (asyncpg.SerializationError("x"), OUTAGES["40001"]),
        (asyncpg.OutOfMemoryError("x"), OUTAGES["53200"]),
        (asyncpg.TooManyConnectionsError("x"), OUTAGES["53300"]),
        (asyncpg.CannotConnectNowError("x"), OUTAGES["57P03"]),
        (asyncpg.AdminShutdownError("x"), OUTAGES["57P01"]),
        (asyncpg.InternalServerError("odd"), None),
        (asyncpg.UniqueViolationError("x"), None),
        (asyncpg.UndefinedColumnError("x"), None),
        (ValueError("x"), None),
    ],
)
def test_what_may_pass_is_told_from_what_will_not(error: Exception, found: object) -> None:
    assert outage_of(error) is found


async def test_a_read_only_session_is_closed_with_all_others_and_the_operation_repeated(dsn: str) -> None:
    db = await FaultyDatabase.open(dsn, max_size=2)
    tries = 0

    async def write(connection: asyncpg.Connection) -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            await connection.execute("SET default_transaction_read_only = on")
        await connection.execute("INSERT INTO windlass.plans (hash, body) VALUES ('x', '{}') ON CONFLICT DO NOTHING")
        pid: int = connection.get_server_pid()
        return pid

    try:
        async with db.connection() as one, db.connection() as two:
            before = {one.get_server_pid(), two.get_server_pid()}
        assert await db.run(write) not in before
        assert tries == 2
        async with db.connection() as one, db.connection() as two:
            assert not before & {one.get_server_pid(), two.get_server_pid()}
    finally:
        await db.close()


@pytest.mark.parametrize(("state", "words"), [("25006", "read-only"), ("53100", "disk of PostgreSQL is full")])
async def test_a_lasting_outage_is_remembered_until_a_write_succeeds(dsn: str, state: str, words: str) -> None:
    db = await FaultyDatabase.open(dsn)
    tries = 0

    async def refused(connection: asyncpg.Connection) -> None:
        nonlocal tries
        tries += 1
        await connection.execute(f"DO $$ BEGIN RAISE EXCEPTION 'raw words' USING ERRCODE = '{state}'; END $$")

    try:
        assert await db.check_writes() is None
        with pytest.raises(DatabaseUnavailable, match=words) as raised:
            await db.run(refused)
        assert "raw words" not in str(raised.value) and raised.value.remedy
        assert tries == (1 if state == "53100" else 4), "nobody makes room within seconds"
        assert db.lasting_outage is OUTAGES[state]
        assert await db.check_writes() is None
        assert db.lasting_outage is None
    finally:
        await db.close()


async def test_a_read_that_fails_in_the_middle_says_why_in_plain_words(dsn: str) -> None:
    db = await Database.open(dsn)
    try:
        with pytest.raises(DatabaseUnavailable, match="cancelled the statement"):
            async with db.connection() as connection:
                await connection.execute("SET statement_timeout = 20; SELECT pg_sleep(60)")
        with pytest.raises(asyncpg.UndefinedColumnError):
            async with db.connection() as connection:
                await connection.execute("SELECT nonsense")
    finally:
        await db.close()


async def test_a_connection_that_the_driver_lost_track_of_is_not_used_again(dsn: str) -> None:
    db = await Database.open(dsn, max_size=1)
    try:
        with pytest.raises(DatabaseUnavailable, match="closed the connection"):
            async with db.connection() as connection:
                before = connection.get_server_pid()
                raise asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")
        assert await db.run(lambda c: c.fetchval("SELECT pg_backend_pid()")) != before
        assert db.losses == 1
    finally:
        await db.close()


async def test_a_server_that_is_read_only_is_seen_without_a_write(dsn: str) -> None:
    db = await Database.open(dsn, max_size=1)
    try:
        async with db.connection() as connection:
            await connection.execute("SET default_transaction_read_only = on")
        assert await db.check_writes() is READ_ONLY
        async with db.connection() as connection:
            await connection.execute("SET default_transaction_read_only = off")
        assert await db.check_writes() is None
    finally:
        await db.close()


async def test_with_several_hosts_the_one_that_accepts_writes_is_found(fresh_dsn: str) -> None:
    folder = fresh_dsn.partition("host=")[2].partition("&")[0]
    assert folder, "the server of the tests listens on a socket"
    many = fresh_dsn.replace(f"host={folder}", f"host=%2Fnowhere,{folder}")
    db = await Database.open(many)
    try:
        assert await db.run(lambda c: c.fetchval("SELECT 1")) == 1
    finally:
        await db.close()
    name = fresh_dsn.rpartition("?")[0].rpartition("/")[2]
    admin = await asyncpg.connect(fresh_dsn)
    await admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await admin.close()
    with pytest.raises(DatabaseUnavailable):
        await Database.open(many)
    db = await Database.open(fresh_dsn)
    assert await db.check_writes() is READ_ONLY, "a single host can be read"
    await db.close()


def test_an_outage_is_logged_once_and_again_when_it_changes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = OutageLog(logging.getLogger("windlass.test"), "the loop")
    log.over()
    for _ in range(3):
        log.note(READ_ONLY.error())
    log.note(DISK_FULL.error())
    monkeypatch.setattr(module, "REMIND_EVERY_S", 0.0)
    log.note(DISK_FULL.error())
    log.over()
    log.over()
    assert len(caplog.records) == 4
    assert caplog.messages[-1] == "the loop continues"
