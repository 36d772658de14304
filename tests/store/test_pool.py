"""The pool hands out only connections that work."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from windlass.store import pool as pools
from windlass.store.pool import Connection, Pool


class Maker:
    """Makes connections, and counts them."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.made = 0

    async def __call__(self) -> Connection:
        self.made += 1
        connection: Connection = await asyncpg.connect(self.dsn, connection_class=Connection)
        return connection


async def test_a_connection_is_used_again(dsn: str) -> None:
    maker = Maker(dsn)
    pool = Pool(maker, 2)
    for _ in range(3):
        connection = await pool.acquire()
        assert await connection.fetchval("SELECT 1") == 1
        pool.release(connection)
    assert maker.made == 1
    await pool.close()


async def test_who_finds_none_waits_for_one(dsn: str) -> None:
    pool = Pool(Maker(dsn), 1)
    first = await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0.02)
    assert not waiting.done()
    pool.release(first)
    assert await waiting is first
    pool.release(first)
    await pool.close()


@pytest.mark.covers("SCR-79")
async def test_a_connection_that_idled_and_died_is_replaced(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker(dsn)
    pool = Pool(maker, 1)
    connection = await pool.acquire()
    process = connection.get_server_pid()
    pool.release(connection)
    admin = await asyncpg.connect(dsn)
    await admin.execute("SELECT pg_terminate_backend($1, 5000)", process)
    await admin.close()
    monkeypatch.setattr(pools, "PING_AFTER_S", -1.0)
    connection = await pool.acquire()
    assert await connection.fetchval("SELECT 1") == 1
    assert maker.made == 2
    pool.release(connection)
    await pool.close()


@pytest.mark.covers("SCR-79")
async def test_an_old_connection_is_replaced(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker(dsn)
    pool = Pool(maker, 1)
    pool.release(await pool.acquire())
    assert pools.RECYCLE_AFTER_S == 300
    monkeypatch.setattr(pools, "RECYCLE_AFTER_S", -1.0)
    pool.release(await pool.acquire())
    assert maker.made == 2
    await pool.close()


@pytest.mark.covers("SCR-79")
async def test_what_comes_back_inside_a_transaction_is_undone(dsn: str) -> None:
    maker = Maker(dsn)
    pool = Pool(maker, 1)
    connection = await pool.acquire()
    await connection.execute("BEGIN")
    await connection.execute("INSERT INTO windlass.plans (hash, body) VALUES ('half', '{}')")
    pool.release(connection)
    connection = await pool.acquire()
    assert maker.made == 2
    assert await connection.fetchval("SELECT count(*) FROM windlass.plans") == 0
    pool.release(connection)
    await pool.close()


async def test_a_failed_connect_leaves_room_for_the_next(dsn: str) -> None:
    async def fail() -> Connection:
        raise ConnectionRefusedError

    pool = Pool(fail, 1)
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.wait_for(pool.acquire(), 60)
    await pool.close()


async def test_closing_cuts_off_what_is_still_in_use(dsn: str) -> None:
    pool = Pool(Maker(dsn), 2)
    connection = await pool.acquire()
    await pool.close()
    assert connection.is_closed()
