"""Gauges of an installation that are read every few seconds: queues, tallies, engines, the lag of the feed.

Each gauge is one bounded read of an index. No count exceeds its limit, and no gauge delays other work.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import asyncpg

from windlass.store.database import Database
from windlass.store.statements import sql

TALLIES_MAX = 5_000
# Engines record that they run every 10 s.
ENGINE_SEEN_S = 30.0


class Queue(NamedTuple):
    """A queue that is not empty: its number of steps, up to the limit, and the age of the oldest job."""

    steps: int
    age_s: float


class Tally(NamedTuple):
    """Jobs of a recipe that reached a state since the installation is served, and their total duration."""

    recipe: str
    state: str
    jobs: int
    seconds: float


async def queues(db: Database, most: int) -> dict[str, Queue]:
    """Return every queue that is not empty, each counted up to `most`."""
    return _queues(await db.run(lambda connection: connection.fetch(sql("gauge_queues"), most)))


async def queues_and_held(db: Database, most: int) -> tuple[dict[str, Queue], int]:
    """Return every queue that is not empty, and the number of steps that wait for a slot, each counted up to `most`."""

    async def operation(connection: asyncpg.Connection) -> tuple[dict[str, Queue], int]:
        rows = await connection.fetch(sql("gauge_queues"), most)
        return _queues(rows), await connection.fetchval(sql("gauge_held"), most)

    return await db.run(operation)


async def tallies(db: Database) -> list[Tally]:
    """Return jobs by recipe and state."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("gauge_tallies"), TALLIES_MAX)
    return [Tally(*row) for row in rows]


async def engines(db: Database) -> int:
    """Count the processes that run the engine's loops."""
    async with db.connection() as connection:
        return await connection.fetchval(sql("gauge_engines"), ENGINE_SEEN_S)  # type: ignore[no-any-return]


async def feed_lag_s(db: Database) -> float:
    """Return how far an open transaction holds followers of the feed behind the present."""
    async with db.connection() as connection:
        return await connection.fetchval(sql("gauge_feed_lag"))  # type: ignore[no-any-return]


async def now(db: Database) -> datetime:
    """Return the database's time, by which leases are measured."""
    async with db.connection() as connection:
        return await connection.fetchval(sql("gauge_now"))  # type: ignore[no-any-return]


def _queues(rows: Iterable[asyncpg.Record]) -> dict[str, Queue]:
    return {row["queue"]: Queue(row["count"], row["age_s"]) for row in rows}
