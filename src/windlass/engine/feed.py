"""The feed: the events of all jobs with a correlation id, in an order that never changes, without gap or repeat.

Events are ordered by the transaction that wrote them and read only below the horizon, the oldest transaction that is
still under way: nothing can appear there later. A writing transaction that stays open delays the feed, never the work.

Three things make a position good for ever:

- A read ends between two transactions such that of no job an event is read while an earlier one is not. Inside what was
  read, a job's events may stand in the wrong order; `pure/cursor.py arrange` tells them in the right one.
- Claims and lone submits commit ahead of the disk, so a crash of PostgreSQL may undo them and use their transaction
  numbers again. So whoever reads such an event waits for the disk before telling it.
- A position is that of an event that was read, hence durable: never of the horizon itself, whose numbers may be used
  again after a crash too.
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
# How many events one read looks at, whoever they belong to.
LOOK_MAX = 10_000


@dataclass(frozen=True, slots=True)
class FeedRow:
    """An event, and its job as it was when the event was read."""

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
    """What one read gave. `end` is where the next begins; `is_ahead` says that the disk must be waited for first."""

    rows: list[FeedRow]
    end: FeedAt
    is_ahead: bool
    is_more: bool


async def here(db: Database) -> FeedAt:
    """A position from which everything is still to come: whatever it is after can be seen now."""

    async def operation(connection: asyncpg.Connection) -> FeedAt:
        horizon = int(await connection.fetchval(sql("feed_horizon")))
        cut = await _whole(connection, ORIGIN, horizon, sql("feed_torn"))
        await flush(connection)
        return below(cut)

    return await db.run(operation)


async def after(
    db: Database, at: FeedAt, *, callers: Sequence[str] | None, limit: int = LOOK_MAX
) -> tuple[list[FeedRow], FeedAt]:
    """What comes after this position, of these callers or of all, durable; and the position to go on from.

    It looks at `limit` events, or as many more as it takes to end at a good place. When there is nothing new below the
    horizon the position is the one that was given: ask again later.
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
    """The same on a connection that is already in use, without waiting for the disk.

    Whoever writes down what was read, in a commit that waits for the disk, need not wait before.
    """
    while (look := await _read(connection, at, callers, limit)) is None:
        # There are more events of one transaction, or of one span, than were looked at.
        limit *= 4
    return look


async def _read(connection: asyncpg.Connection, at: FeedAt, callers: Sequence[str] | None, limit: int) -> Look | None:
    """None when there is no good place to end at among the first `limit` events."""
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
    # The transaction that was looked at last may have more events than were looked at.
    cut = place.txid if is_more else int(horizon)
    whole = await _whole(connection, at, cut, sql("feed_torn_behind") if is_more else sql("feed_torn"))
    if is_more and first_txid >= whole:
        return None
    if whole == cut and not is_more:
        return Look(rows, place, is_ahead, False)
    return Look([row for row in rows if row.at.txid < whole], max(at, below(whole)), is_ahead, is_more)


async def _whole(connection: asyncpg.Connection, at: FeedAt, cut: int, statement: str) -> int:
    """The highest cut up to this one that has no job's event before it while an earlier one is beyond it."""
    while (torn := await connection.fetchval(statement, str(at.txid), at.job_id, at.seq, str(cut))) is not None:
        cut = int(torn)
    return cut


async def cursor(connection: asyncpg.Connection, name: str) -> FeedAt:
    """How far the follower of this name has come; the beginning, if it never followed."""
    row = await connection.fetchrow(sql("cursor_get"), name)
    return ORIGIN if row is None else FeedAt(int(row["txid"]), row["job_id"], row["seq"])


async def keep_cursor(connection: asyncpg.Connection, name: str, at: FeedAt) -> None:
    """Write down how far the follower has come, in the commit of what it did."""
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
