"""Redrives or discards the dead letters of one kind.

Each job has its own commit, which also records the redrive. Two concurrent redrives run no job twice, and an
interrupted request may be sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal
from uuid import UUID

import asyncpg

from windlass.core.caller import PRIORITY_MAX
from windlass.core.control import Targets
from windlass.core.errors import Refused, WrongState
from windlass.engine.bulk import BULK_MAX, Bulk
from windlass.engine.rerun import Wish, make
from windlass.engine.submit import check_text
from windlass.store.database import Database
from windlass.store.statements import sql

Start = Literal["failed", "first"]


async def redrive(
    db: Database,
    found: Targets,
    start: Start,
    *,
    new_id: Callable[[], UUID],
    limit: int,
    dry_run: bool,
    source: str,
    request_id: str | None,
    priority_max: int = PRIORITY_MAX,
) -> Bulk:
    """Run the newest `limit` jobs of one kind again, from where they failed or from their first step."""
    ids, is_more = found
    if dry_run:
        return Bulk(len(ids), is_more)
    done: list[tuple[UUID, UUID | None]] = []
    refused: list[tuple[UUID, str]] = []
    wish = Wish("retry" if start == "failed" else "rerun")
    for job_id in ids[: min(limit, BULK_MAX)]:
        try:
            made = await make(
                *(db, job_id, wish, new_id()),
                source=source,
                request_id=request_id,
                once=True,
                priority_max=priority_max,
            )
            done.append((job_id, made))
        except Refused as error:
            refused.append((job_id, error.code))
    return Bulk(len(ids), is_more, tuple(done), tuple(refused))


async def discard(db: Database, found: Targets, *, dry_run: bool, reason: str, source: str) -> Bulk:
    """Discard the jobs of one kind: they stay failed and are no longer dead letters."""
    check_text(reason)
    check_text(source)
    ids, is_more = found
    if dry_run:
        return Bulk(len(ids), is_more)

    async def operation(connection: asyncpg.Connection) -> set[UUID]:
        async with connection.transaction():
            await connection.execute(sql("dead_letter_discard"), ids, source, reason)
            # Includes jobs that an earlier commit discarded whose reply was lost.
            return {row["job_id"] for row in await connection.fetch(sql("dead_letter_discarded"), ids)}

    gone = await db.run(operation)
    return Bulk(
        len(ids),
        is_more,
        tuple((job_id, None) for job_id in ids if job_id in gone),
        tuple((job_id, WrongState.code) for job_id in ids if job_id not in gone),
    )
