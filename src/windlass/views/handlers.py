"""Handlers that queued steps need and no live worker has, for `why`, the overview and `/readyz`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from windlass.store.database import Database
from windlass.store.statements import sql

# The most handlers that are checked.
QUEUED_MAX = 200


@dataclass(frozen=True, slots=True)
class Missing:
    """A handler that no live worker of a queue has.

    `since` is when the last worker with the handler left or was last seen, else when a waiting job was made.
    """

    queue: str
    handler: str
    since: datetime | None
    worker: UUID | None
    host: str | None

    @property
    def last(self) -> str:
        """Describe in a sentence which worker had it last."""
        if self.worker is None:
            return "no worker has had it yet"
        return f"worker {self.worker} on {self.host} had it last, until {self.since:%Y-%m-%d %H:%M:%S} UTC"


async def missing(db: Database) -> list[Missing]:
    """Return every handler that a queued step needs and no live worker has."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("handler_queued"), QUEUED_MAX)
        if not rows:
            return []
        made = {(row["queue"], row["handler"]): _made_at(row["job_id"]) for row in rows}
        return await missing_of(connection, made)


async def missing_of(
    connection: asyncpg.Connection, wanted: Mapping[tuple[str, str], datetime | None]
) -> list[Missing]:
    """Return the given handlers, by queue and name, that no live worker has."""
    queues, names = [queue for queue, _ in wanted], [name for _, name in wanted]
    return [
        Missing(
            row["queue"],
            row["handler"],
            row["until"] or wanted[row["queue"], row["handler"]],
            row["worker"],
            row["host"],
        )
        for row in await connection.fetch(sql("handler_missing"), queues, names)
    ]


def _made_at(job_id: UUID) -> datetime:
    """Return when a job was made: its id begins with that millisecond."""
    return datetime.fromtimestamp((job_id.int >> 80) / 1000, UTC)
