"""The feed: the events of all jobs with a correlation id, in an order that never changes, without gap or repeat.

Events are ordered by the transaction that wrote them. Reads stop below the horizon, the oldest transaction still under
way: nothing can appear there later. A writing transaction that stays open delays the feed, never the work.

Three rules make a position valid for ever:

- A read ends between two transactions. It never contains an event of a job while an earlier event of that job is beyond
  its end. Within one read a job's events may be out of order; `pure/cursor.py arrange` sorts them.
- Claims and lone submits commit without waiting for the disk. A crash of PostgreSQL may undo them and reuse their
  transaction numbers. A reader of such an event therefore waits for the disk before it passes the event on.
- A position is the position of an event that was read, so it is durable. It is never the horizon: a crash ends the
  horizon's transaction, and its number may be reused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from windlass.core.states import JobState
from windlass.core.visibility import Reader
from windlass.pure.cursor import ORIGIN, FeedAt, below
from windlass.store.database import Database, flush
from windlass.store.outputs import Row, fetch
from windlass.store.statements import sql

PAGE = 500
# The maximum number of events that one read examines, of all callers together.
LOOK_MAX = 10_000


@dataclass(frozen=True, slots=True)
class FeedRow:
    """An event, with its job as of the read."""

    at: FeedAt
    when: datetime
    type: str
    no: int | None
    attempt: int | None
    payload: Any
    correlation_id: str
    caller: str
    recipe: str
    labels: Any
    state: JobState
    progress: Any
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one read.

    The next read begins at `end`. With `is_ahead`, the reader must first wait for the disk.
    """

    rows: list[FeedRow]
    end: FeedAt
    is_ahead: bool
    is_more: bool


async def here(db: Database) -> FeedAt:
    """Return a position after every event that is visible now. Events that become visible later come after it."""

    async def operation(connection: asyncpg.Connection) -> FeedAt:
        horizon = int(await connection.fetchval(sql("feed_horizon")))
        cut = await _whole(connection, ORIGIN, horizon, sql("feed_torn"))
        await flush(connection)
        return below(cut)

    return await db.run(operation)


async def after(
    db: Database, at: FeedAt, *, callers: Sequence[str] | None, limit: int = LOOK_MAX
) -> tuple[list[FeedRow], FeedAt]:
    """Read the durable events after this position, of these callers or of all. Returns the next position too.

    It examines `limit` events, or as many more as a valid end needs. When nothing is new below the horizon, it returns
    the given position: ask again later.
    """

    async def operation(connection: asyncpg.Connection) -> Look:
        look = await read(connection, at, callers=callers, limit=limit)
        if look.is_ahead:
            await flush(connection)
        return look

    look = await db.run(operation)
    return look.rows, look.end


async def read(
    connection: asyncpg.Connection, at: FeedAt, *, callers: Sequence[str] | None = None, limit: int = LOOK_MAX
) -> Look:
    """Read on a connection that is already in use, without waiting for the disk.

    For a reader that records these events in a commit that waits for the disk: that wait covers the events too.
    """
    while (look := await _read(connection, at, callers, limit)) is None:
        # One transaction, or one span without a valid end, has more events than the limit.
        limit *= 4
    return look


async def _read(connection: asyncpg.Connection, at: FeedAt, callers: Sequence[str] | None, limit: int) -> Look | None:
    """Read once. Returns None when the first `limit` events contain no valid end."""
    rows: list[FeedRow] = []
    place, horizon, looked, is_ahead, first_txid = at, None, 0, False, 0
    while looked < limit:
        size = min(PAGE, limit - looked)
        values = (str(place.txid), place.job_id, place.seq, horizon, callers, size)
        found = await fetch(connection, "feed_page", Reader.FEED, *values)
        if not found:
            break
        first = found[0]
        rows.extend(_row(row) for row in found if row["txid"] is not None)
        horizon = first["horizon"]
        first_txid = first_txid or int(first["first_txid"])
        place = FeedAt(int(first["last_txid"]), first["last_job"], first["last_seq"])
        is_ahead = is_ahead or first["is_ahead"]
        looked += first["looked"]
        if first["looked"] < size:
            break
    if horizon is None:
        return Look([], at, False, False)
    is_more = looked >= limit
    # The last transaction read may have more events than were read.
    cut = place.txid if is_more else int(horizon)
    whole = await _whole(connection, at, cut, sql("feed_torn_behind") if is_more else sql("feed_torn"))
    if is_more and first_txid >= whole:
        return None
    if whole == cut and not is_more:
        return Look(rows, place, is_ahead, False)
    return Look([row for row in rows if row.at.txid < whole], max(at, below(whole)), is_ahead, is_more)


async def _whole(connection: asyncpg.Connection, at: FeedAt, cut: int, statement: str) -> int:
    """Return the highest valid cut up to `cut`.

    A cut is valid if no job has an event before the cut and an earlier event after it.
    """
    while (torn := await connection.fetchval(statement, str(at.txid), at.job_id, at.seq, str(cut))) is not None:
        cut = int(torn)
    return cut


async def cursor(connection: asyncpg.Connection, name: str) -> FeedAt:
    """Return the follower's position, or ORIGIN if it has none."""
    row = await connection.fetchrow(sql("cursor_get"), name)
    return ORIGIN if row is None else FeedAt(int(row["txid"]), row["job_id"], row["seq"])


async def keep_cursor(connection: asyncpg.Connection, name: str, at: FeedAt) -> None:
    """Store the follower's position, in the commit of its work."""
    await connection.execute(sql("cursor_put"), name, str(at.txid), at.job_id, at.seq)


def _row(row: Row) -> FeedRow:
    return FeedRow(
        FeedAt(int(row["txid"]), row["job_id"], row["seq"]),
        row["at"],
        row["type"],
        row["no"],
        row["attempt"],
        _value(row["payload"]),
        row["correlation_id"],
        row["caller"],
        row["recipe"],
        _value(row["labels"]),
        JobState(row["state"]),
        _value(row["progress"]),
        row["created_at"],
        row["started_at"],
        row["finished_at"],
    )


def _value(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
