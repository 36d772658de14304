"""What a dashboard asks: right, bounded, and answered from an index however much there is."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import asyncpg

from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.testing.clock import VirtualClock
from windlass.views import gauge

STEP = "INSERT INTO windlass.steps (job_id, no, node, state, queue, priority, unmet, timeout_s) "


async def queued(db: Database, queue: str, priority: int, made_ms: int, count: int = 1, state: str = "QUEUED") -> None:
    """Steps in a queue, of jobs that were made in this millisecond."""

    async def operation(connection: asyncpg.Connection) -> None:
        await connection.execute(
            STEP + "SELECT $1, n, 0, $2, $3, $4, 0, 60 FROM generate_series(1, $5::int) AS n",
            UUID(int=made_ms << 80 | 7 << 76 | abs(hash((queue, priority, state))) % 2**60),
            state,
            queue,
            priority,
            count,
        )

    await db.run(operation)


async def test_queues_are_counted_up_to_the_limit_and_the_oldest_job_is_found(
    timed_db: Database, clock: VirtualClock
) -> None:
    now_ms = clock.now_ms()
    await queued(timed_db, "a", 0, now_ms - 5_000, 3)
    await queued(timed_db, "a", 50, now_ms - 1_000, 4)
    await queued(timed_db, "a", -50, now_ms - 9_000, 1)
    await queued(timed_db, "b", 7, now_ms - 2_000, 20)
    await queued(timed_db, "c", 0, now_ms - 99_000, 2, state="RUNNING")
    assert await gauge.queues(timed_db, 10) == {"a": gauge.Queue(8, 9.0), "b": gauge.Queue(10, 2.0)}


async def test_an_empty_installation_has_nothing_to_show(db: Database) -> None:
    assert await gauge.queues(db, 10) == {}
    assert await gauge.tallies(db) == []
    assert await gauge.engines(db) == 0


async def test_a_job_made_by_a_clock_ahead_of_ours_is_not_of_negative_age(
    timed_db: Database, clock: VirtualClock
) -> None:
    await queued(timed_db, "a", 0, clock.now_ms() + 60_000)
    assert (await gauge.queues(timed_db, 10))["a"].age_s == 0


async def test_every_look_at_queues_is_of_the_index(db: Database) -> None:
    async with db.connection() as connection:
        await connection.execute(
            STEP + "SELECT gen_random_uuid(), 1, 0, CASE n % 2 WHEN 0 THEN 'QUEUED' ELSE 'COMPLETED' END, "
            "'q' || n % 5, n % 7, 0, 60 FROM generate_series(1, 50000) AS n"
        )
        await connection.execute("VACUUM ANALYZE windlass.steps")
        rows = await connection.fetch("EXPLAIN " + sql("gauge_queues").replace("$1", "100"))
        assert sum(row["count"] for row in await connection.fetch(sql("gauge_queues"), 100)) == 500
    plan = [row[0] for row in rows]
    looks = [line for line in plan if " on steps" in line]
    assert len(looks) >= 4
    assert all("using steps_queued" in line for line in looks), plan
    assert not any("Sort" in line and "Incremental" not in line for line in plan if "steps" in line)


async def test_engines_count_while_they_are_seen(timed_db: Database, clock: VirtualClock) -> None:
    async def operation(connection: asyncpg.Connection) -> None:
        await connection.execute(
            "INSERT INTO windlass.engines SELECT gen_random_uuid(), 'h', 1, windlass.clock(), windlass.clock()"
        )

    await timed_db.run(operation)
    assert await gauge.engines(timed_db) == 1
    clock.advance(timedelta(seconds=gauge.ENGINE_SEEN_S + 1).total_seconds())
    assert await gauge.engines(timed_db) == 0


async def test_tallies_are_read_as_they_were_counted(db: Database) -> None:
    async def operation(connection: asyncpg.Connection) -> None:
        await connection.execute("INSERT INTO windlass.tallies VALUES ('b', 'QUEUED', 2, 0), ('a', 'FAILED', 1, 2.5)")

    await db.run(operation)
    assert await gauge.tallies(db) == [("a", "FAILED", 1, 2.5), ("b", "QUEUED", 2, 0.0)]


async def test_a_transaction_under_way_holds_the_feed_back(db: Database, dsn: str) -> None:
    assert await gauge.feed_lag_s(db) == 0
    other = await asyncpg.connect(dsn)
    try:
        async with other.transaction():
            await other.execute("SELECT pg_current_xact_id()")
            assert await gauge.feed_lag_s(db) > 0
    finally:
        await other.close()
