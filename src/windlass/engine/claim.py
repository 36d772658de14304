"""Claiming: the one door through which a step starts.

A claim makes the step RUNNING under a new attempt number and names the worker, in one statement. It commits without
waiting for the disk: a claim that a crash undoes is only claimed again, and as the log is written in order, a result
that is on disk has its claim on disk too.

If the answer of a claim is lost on the way, the worker holds steps that it does not know of. It asks `held` and runs
what it is not running yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from windlass.core.errors import DatabaseUnavailable
from windlass.store.database import Database, is_transient
from windlass.store.drafts import lock
from windlass.store.statements import sql

# How far a claim looks beyond what it takes, so that it finds work behind jobs that are locked.
LOOK_AHEAD = 4
CLAIM_MAX = 500


@dataclass(frozen=True, slots=True)
class Claimed:
    """A step that this worker must now run. `input`, `item` and `checkpoint` are JSON texts."""

    job_id: UUID
    no: int
    attempt: int
    plan_hash: str
    node: int
    index: int | None
    input: str
    item: str | None
    checkpoint: str | None
    failures: int
    timeout_s: float
    deadline_s: float | None


async def claim(db: Database, *, worker: UUID, queues: Sequence[str], limit: int) -> list[Claimed]:
    """Take up to `limit` steps. Not done again when the connection is lost: the caller then asks `held`."""
    count = min(limit, CLAIM_MAX)
    try:
        return await db.attempt(lambda connection: _claim(connection, worker, list(queues), count))
    except Exception as error:
        if is_transient(error):
            raise DatabaseUnavailable(f"a claim's answer was lost: {error or type(error).__name__}") from error
        raise


async def _claim(connection: asyncpg.Connection, worker: UUID, queues: list[str], count: int) -> list[Claimed]:
    arguments = (worker, queues, count, count * LOOK_AHEAD, f'{{"worker":"{worker}"}}')
    rows = await connection.fetch(sql("step_claim"), *arguments)
    if not rows:
        # Nothing is queued, or all that was looked at belongs to jobs that are being written to: wait for the first.
        first = await connection.fetchval(sql("step_first_queued"), queues)
        if first is not None:
            async with connection.transaction():
                await lock(connection, [first])
                rows = await connection.fetch(sql("step_claim"), *arguments)
    return _claimed(rows)


async def held(db: Database, worker: UUID) -> list[Claimed]:
    """Everything that the database says this worker is running."""
    return _claimed(await db.run(lambda connection: connection.fetch(sql("step_held"), worker)))


async def held_keys(db: Database, worker: UUID) -> set[tuple[UUID, int, int]]:
    """The same by (job, step number, attempt) only; an attempt that is not among them is no longer this worker's."""
    rows = await db.run(lambda connection: connection.fetch(sql("step_held_keys"), worker))
    return {(row["job_id"], row["no"], row["attempt"]) for row in rows}


def _claimed(rows: Sequence[asyncpg.Record]) -> list[Claimed]:
    # A job's inputs come with its first step only; the rows are in no particular order.
    inputs = {row["job_id"]: row["input"] for row in rows if row["input"] is not None}
    return [
        Claimed(
            row["job_id"],
            row["no"],
            row["attempt"],
            row["plan"],
            row["node"],
            row["index"],
            inputs[row["job_id"]],
            row["item"],
            row["checkpoint"],
            row["failures"],
            row["timeout_s"],
            row["deadline_s"],
        )
        for row in rows
    ]
