"""Work that providers do for steps: told before it is asked for, polled, cancelled, and answered by whoever is first.

    intend ──► the provider is asked ──► Parked(external_id) ──► answer, by webhook or poll ──► settled
    SUBMITTING                            RUNNING                                                ENDED
                                             │
                                             └──► the step was cancelled, or waited too long: CANCELLING ──► ENDED

`intend` is committed before the provider is asked, so whoever comes after a crash asks with the same key. What becomes
of the rows when their steps move is in `store/provider_jobs.py`, what an answer does in `engine/answer.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.bell import PollDue
from windlass.core.external import POLL_S, WorkKey
from windlass.engine.answer import Answer, Applied, EventRow, InEvent, answer, events, reapply
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.provider_jobs import CANCELLING, id_locks, release_events
from windlass.store.statements import sql

__all__ = [
    "Answer", "Applied", "EventRow", "InEvent", "Intent", "Polled", "Work", "answer", "due", "events",
    "intend", "known", "next_due", "orphaned", "polled", "reapply", "rejected",
]  # fmt: skip


class Intent(NamedTuple):
    """The work that an attempt is to ask for.

    RUNNING with an `external_id`: it was asked for before, and goes on there. Not `is_new`: it may have been.
    """

    key: WorkKey
    external_id: str | None
    state: str
    is_new: bool


class Work(NamedTuple):
    """Work to ask the provider about, or to cancel there. `due_at` is until when it is this taker's."""

    key: WorkKey
    attempt: int
    provider: str
    external_id: str | None
    state: str
    polls: int
    status: str | None
    created_at: datetime
    now: datetime
    due_at: datetime


class Polled(NamedTuple):
    """What came of it, if it goes on: `after_s` until the next time, None for never.

    `is_over` ends work that was to be cancelled. Work that was given back unasked is no poll.
    """

    work: Work
    status: str | None
    after_s: float | None
    is_over: bool = False
    is_poll: bool = True


async def intend(
    db: Database,
    job_id: UUID,
    no: int,
    attempt: int,
    provider: str,
    *,
    poll_s: float = POLL_S[0],
    worker: UUID | None = None,
) -> Intent | None:
    """Write down that the provider is about to be asked; None if the attempt no longer runs, or not on this worker.

    `poll_s` is how long after its submit the work is asked about for the first time.
    """

    while True:
        row = await db.run(lambda c: c.fetchrow(sql("work_intend"), job_id, no, attempt, provider, poll_s, worker))
        if row is None:
            return None
        if row["round"] is not None:
            return Intent(WorkKey(job_id, no, row["round"]), row["external_id"], row["state"], row["is_new"])


async def rejected(db: Database, key: WorkKey, status: str, *, attempt: int | None = None) -> None:
    """The provider has said no, and nothing was begun: the round is over. It never ends another attempt's round."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [key.job_id])
            await connection.execute(sql("work_rejected"), key.job_id, key.no, key.round, status, attempt)

    await db.run(operation)


async def orphaned(db: Database, key: WorkKey, provider: str, external_id: str) -> None:
    """Work was begun for an attempt that is over: the attempt after it takes it over, or it is cancelled."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [key.job_id])
            values = (key.job_id, key.no, key.round, provider, external_id)
            if await connection.fetchval(sql("work_orphaned"), *values):
                connection.ring(PollDue())
            await connection.execute(sql("work_id_lock"), id_locks([(provider, external_id)]))
            await release_events(connection, [(provider, external_id)])

    await db.run(operation)


async def due(db: Database, limit: int, lease_s: float, *, provider: str) -> list[Work]:
    """Take up to `limit` of what is to be polled or cancelled now. Nobody else is given it for `lease_s`."""
    rows = await db.run(lambda connection: connection.fetch(sql("work_due"), provider, limit, lease_s))
    return [Work(WorkKey(*row[:3]), *row[3:]) for row in rows]


async def next_due(db: Database, providers: Sequence[str]) -> dict[str, float]:
    """In how many seconds each provider is to be asked something; those with nothing to ask are left out."""
    rows = await db.run(lambda connection: connection.fetch(sql("work_next_due"), list(providers)))
    return {row["provider"]: row["wait_s"] for row in rows}


async def polled(db: Database, results: Sequence[Polled]) -> None:
    """Write down what was heard of work that goes on, and when to ask again. Nothing is settled by this."""
    if any(result.is_over and result.work.state != CANCELLING for result in results):
        raise ValueError("only a cancel can be over; all else ends with an answer")
    if not results:
        return
    rows = [
        (*_parts(work.key), work.state, work.due_at, status, after_s, is_over, is_poll, work.polls)
        for work, status, after_s, is_over, is_poll in results
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    await db.run(lambda connection: connection.execute(sql("work_polled"), *columns))


def _parts(key: WorkKey) -> tuple[UUID, int, int]:
    return key.job_id, key.no, key.round


async def known(db: Database, provider: str, external_ids: Sequence[str]) -> set[str]:
    """Which of these the provider does for us, or did."""
    ids = list(external_ids)
    rows = await db.run(lambda connection: connection.fetch(sql("work_known"), [provider] * len(ids), ids))
    return {ids[row["place"] - 1] for row in rows}
