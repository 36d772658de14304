"""What is asked of an installation every few seconds to see how it does: queues, tallies, engines, the feed's lag.

Each is one bounded look at an index. Nothing is counted past its limit, and none of it stands in the way of work.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import asyncpg

from windlass.store.database import Database
from windlass.store.statements import sql

TALLIES_MAX = 5_000
# Engines note that they are there every 10 s.
ENGINE_SEEN_S = 30.0


class Queue(NamedTuple):
    """A queue that holds something: how many steps (no more are counted than was asked), and the oldest job's age."""

    steps: int
    age_s: float


class Tally(NamedTuple):
    """Jobs of a recipe that came into a state since the installation is served, and how long they took together."""

    recipe: str
    state: str
    jobs: int
    seconds: float


async def queues(db: Database, most: int) -> dict[str, Queue]:
    """Every queue with something in it, each counted up to `most`."""
    return _queues(await db.run(lambda connection: connection.fetch(sql("gauge_queues"), most)))


async def queues_and_held(db: Database, most: int) -> tuple[dict[str, Queue], int]:
    """Every queue with something in it, and how many steps wait for a slot, each counted up to `most`."""

    async def operation(connection: asyncpg.Connection) -> tuple[dict[str, Queue], int]:
        rows = await connection.fetch(sql("gauge_queues"), most)
        return _queues(rows), await connection.fetchval(sql("gauge_held"), most)

    return await db.run(operation)


async def tallies(db: Database) -> list[Tally]:
    """Jobs by recipe and state."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("gauge_tallies"), TALLIES_MAX)
    return [Tally(*row) for row in rows]


async def engines(db: Database) -> int:
    """How many processes run the engine's loops."""
    async with db.connection() as connection:
        return await connection.fetchval(sql("gauge_engines"), ENGINE_SEEN_S)  # type: ignore[no-any-return]


async def feed_lag_s(db: Database) -> float:
    """How far behind the present whoever follows the feed is held by a transaction that is still under way."""
    async with db.connection() as connection:
        return await connection.fetchval(sql("gauge_feed_lag"))  # type: ignore[no-any-return]


async def now(db: Database) -> datetime:
    """The database's time, which leases go by."""
    async with db.connection() as connection:
        return await connection.fetchval(sql("gauge_now"))  # type: ignore[no-any-return]


def _queues(rows: Iterable[asyncpg.Record]) -> dict[str, Queue]:
    return {row["queue"]: Queue(row["count"], row["age_s"]) for row in rows}
