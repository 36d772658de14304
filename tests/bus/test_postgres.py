"""Bells by PostgreSQL: when they are rung, how many transactions they take, and what happens without a server."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import asyncpg
import pytest

from windlass.bus import postgres
from windlass.bus.postgres import PostgresBus
from windlass.core.bell import Bell, GrantDue, JobsEnded, RouteDue, WorkQueued
from windlass.store.database import Database
from windlass.store.pool import Connection

PUT = "INSERT INTO windlass.plans (hash, body) VALUES ($1, '{}')"
COUNT = "SELECT count(*) FROM windlass.plans"


async def opened(dsn: str) -> asyncpg.Connection:
    connection: asyncpg.Connection = await asyncpg.connect(dsn)
    return connection


async def found_on_hearing(dsn: str, db: Database) -> list[int]:
    """How many rows a listener finds that looks the moment it hears each of twenty bells."""
    looker = await opened(dsn)
    heard: asyncio.Queue[int] = asyncio.Queue()
    await db.listen(GrantDue, lambda _: heard.put_nowait(1))
    while not heard.empty():
        heard.get_nowait()
    found = []
    try:
        for number in range(20):

            async def write(connection: Any, number: int = number) -> None:
                async with connection.transaction():
                    await connection.execute(PUT, str(number))
                    connection.ring(GrantDue())
                    await connection.execute("SELECT pg_sleep(0.01)")

            writing = asyncio.create_task(db.run(write))
            await asyncio.wait_for(heard.get(), 60)
            found.append(await looker.fetchval(COUNT))
            await writing
    finally:
        await looker.close()
    return found


async def test_a_listener_that_looks_at_once_finds_what_the_bell_tells_of(dsn: str, db: Database) -> None:
    assert await found_on_hearing(dsn, db) == list(range(1, 21))


async def test_a_bell_rung_before_its_commit_is_noticed(
    dsn: str, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted flaw: the test above can fail."""

    def too_early(self: Connection, *bells: Bell) -> None:
        assert self.on_ring is not None
        self.on_ring(bells)

    monkeypatch.setattr(Connection, "ring", too_early)
    assert await found_on_hearing(dsn, db) != list(range(1, 21))


async def test_a_failed_operation_rings_nothing(db: Database) -> None:
    heard: list[Bell] = []
    await db.listen(GrantDue, heard.append)
    await db.listen(RouteDue, heard.append)
    heard.clear()

    async def fail(connection: Any) -> None:
        async with connection.transaction():
            await connection.execute(PUT, "undone")
            connection.ring(GrantDue())
            raise LookupError

    with pytest.raises(LookupError):
        await db.run(fail)

    async def succeed(connection: Any) -> None:
        connection.ring(RouteDue())

    await db.run(succeed)
    async with asyncio.timeout(60):
        while not heard:
            await asyncio.sleep(0.005)
    assert heard == [RouteDue()]


async def test_bells_of_a_busy_process_share_transactions(dsn: str) -> None:
    """Bells that are rung while a NOTIFY is under way go together in the next one."""
    sent = 0

    class Counting(PostgresBus):
        async def _send(self) -> None:
            nonlocal sent
            sent += 1
            await super()._send()

    bus, other = Counting(lambda: opened(dsn)), PostgresBus(lambda: opened(dsn))
    heard: list[WorkQueued] = []
    await bus.listen(RouteDue, lambda _: None)
    await other.listen(WorkQueued, heard.append)
    for number in range(500):
        bus.ring([WorkQueued((f"q{number}",))])
    async with asyncio.timeout(60):
        while len({queue for bell in heard for queue in bell.queues}) < 500:
            await asyncio.sleep(0.005)
    await bus.close()
    await other.close()
    assert sent == 2, "the first alone and at once, the rest together"


async def test_a_busy_process_leaves_no_bell_to_its_commits(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lone bell goes with its commit. Many are gathered, and the process is idle again a moment after the last."""
    now_s = 100.0
    monkeypatch.setattr(postgres.time, "monotonic", lambda: now_s)
    bus = PostgresBus(lambda: opened(dsn))
    assert bus.carry([RouteDue()]) == [(RouteDue.channel, "")]
    for _ in range(postgres.BUSY_BELLS):
        bus.ring([RouteDue()])
    assert bus.carry([RouteDue()]) == ()
    now_s += 2.1 * postgres.WINDOW_S
    assert bus.carry([RouteDue()]) == [(RouteDue.channel, "")]
    await bus.close()


async def test_a_server_that_is_away_costs_neither_errors_nor_memory() -> None:
    async def away() -> asyncpg.Connection:
        raise ConnectionRefusedError

    bus = PostgresBus(away, spread=lambda: 0.0)
    for number in range(5 * postgres.WAITING_MAX):
        bus.ring([WorkQueued((f"q{number}",)), JobsEnded()])
    assert bus.health().waiting <= postgres.WAITING_MAX
    assert not bus.health().is_connected
    await bus.close()


async def test_processes_that_lost_the_server_come_back_at_different_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full jitter: anywhere between nothing and a limit that doubles up to half a minute."""
    waits: list[float] = []
    enough = asyncio.Event()

    async def away() -> asyncpg.Connection:
        raise ConnectionRefusedError

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 8:
            enough.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(postgres, "pause", sleep)
    bus = PostgresBus(away, spread=lambda: 0.5)
    bus.ring([RouteDue()])
    await asyncio.wait_for(enough.wait(), 60)
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]
    await bus.close()


async def test_a_bell_on_its_way_when_the_bus_closes_leaves_no_error_behind(dsn: str) -> None:
    told: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context))
    bus = PostgresBus(lambda: opened(dsn), spread=lambda: 0.0)
    await bus.listen(RouteDue, lambda _: None)
    while not bus._is_free:
        await asyncio.sleep(0.001)
    bus.ring([GrantDue()])
    sending = bus._sending
    assert sending is not None, "it was sent at once"
    await bus.close()
    await asyncio.wait([sending])
    del sending, bus
    gc.collect()
    assert told == []
