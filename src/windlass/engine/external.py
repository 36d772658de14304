"""Provider jobs: work that providers do for steps. Recorded before it is requested, then polled, cancelled or answered.

    intend ──► the provider is asked ──► Parked(external_id) ──► answer, by webhook or poll ──► settled
    SUBMITTING                            RUNNING                                                ENDED
                                             │
                                             └──► the step was cancelled, or waited too long: CANCELLING ──► ENDED

`intend` commits before the provider is asked, so the next attempt after a crash asks with the same key.
`store/provider_jobs.py` says how the rows follow their steps, `engine/answer.py` what an answer does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.bell import PollDue
from windlass.core.external import POLL_S, WorkKey
from windlass.core.verdict import Verdict
from windlass.engine.answer import Answer, Applied, EventRow, InEvent, answer, events, reapply
from windlass.engine.door import enter, gated
from windlass.engine.policies import Current
from windlass.engine.provider_edge import ProviderRequest, judge_request
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.provider_jobs import CANCELLING, id_locks, release_events
from windlass.store.statements import bound, sql

__all__ = [
    "Answer", "Applied", "EventRow", "InEvent", "Intent", "Polled", "Work", "answer", "due", "events",
    "intend", "known", "next_due", "orphaned", "polled", "reapply", "rejected",
]  # fmt: skip


class Intent(NamedTuple):
    """The provider job that an attempt is to request.

    RUNNING with an `external_id`: it was requested before and continues there. Not `is_new`: it may have been
    requested.
    """

    key: WorkKey
    external_id: str | None
    state: str
    is_new: bool


class Work(NamedTuple):
    """A provider job to poll or to cancel. It belongs to this poller until `due_at`."""

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
    """The result of a poll of work that goes on. The next poll is `after_s` seconds later, or never if None.

    `is_over` ends work that was to be cancelled. Work that was returned without a request is not a poll (`is_poll`).
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
    request: ProviderRequest | None = None,
) -> Intent | Verdict | None:
    """Record that the provider is about to be asked. None if the attempt no longer runs, or runs on another worker.

    The policy judges the `request` in the same commit. A verdict that does not let it go out takes the place of the
    record. The first poll is due `poll_s` seconds after the submit.
    """
    values = (job_id, no, attempt, provider, poll_s, worker)

    async def operation(connection: asyncpg.Connection, gate: Current) -> asyncpg.Record | Verdict | None:
        if request is None or not gate.is_gated:
            return await connection.fetchrow(sql("work_intend"), *values)
        async with connection.transaction():
            await enter(connection, gate)
            verdict = await judge_request(connection, gate, request)
            return verdict or await connection.fetchrow(sql("work_intend"), *values)

    while True:
        row = await gated(db, operation)
        if row is None or isinstance(row, Verdict):
            return row
        if row["round"] is not None:
            return Intent(WorkKey(job_id, no, row["round"]), row["external_id"], row["state"], row["is_new"])


async def rejected(db: Database, key: WorkKey, status: str, *, attempt: int | None = None) -> None:
    """End the round: the provider refused, and no work began. Never ends the round of another attempt."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [key.job_id])
            await connection.execute(sql("work_rejected"), key.job_id, key.no, key.round, status, attempt)

    await db.run(operation)


async def orphaned(db: Database, key: WorkKey, provider: str, external_id: str) -> None:
    """Record work that began for an attempt that is over. The next attempt takes it over, or it is cancelled."""

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
    """Take up to `limit` provider jobs to poll or cancel now. No other poller gets them for `lease_s` seconds."""
    rows = await db.run(lambda connection: connection.fetch(sql("work_due"), provider, limit, lease_s))
    return [Work(WorkKey(*row[:3]), *row[3:]) for row in rows]


async def next_due(db: Database, providers: Sequence[str]) -> dict[str, float]:
    """Return the seconds until each provider has a request due. Providers without due requests are left out."""
    rows = await db.run(lambda connection: connection.fetch(sql("work_next_due"), list(providers)))
    return {row["provider"]: row["wait_s"] for row in rows}


async def polled(db: Database, results: Sequence[Polled]) -> None:
    """Record the status of work that goes on, and when to poll it again. Settles nothing."""
    if any(result.is_over and result.work.state != CANCELLING for result in results):
        raise ValueError("only a cancelled provider job can be over; any other ends with an answer")
    if not results:
        return
    told = bound(
        "work_polled",
        job_id=[result.work.key.job_id for result in results],
        no=[result.work.key.no for result in results],
        round=[result.work.key.round for result in results],
        state=[result.work.state for result in results],
        due_at=[result.work.due_at for result in results],
        polls=[result.work.polls for result in results],
        status=[result.status for result in results],
        after_s=[result.after_s for result in results],
        is_over=[result.is_over for result in results],
        is_poll=[result.is_poll for result in results],
    )
    await db.run(lambda connection: connection.execute(*told))


def _parts(key: WorkKey) -> tuple[UUID, int, int]:
    return key.job_id, key.no, key.round


async def known(db: Database, provider: str, external_ids: Sequence[str]) -> set[str]:
    """Return which of these ids belong to provider jobs of ours, running or ended."""
    ids = list(external_ids)
    rows = await db.run(lambda connection: connection.fetch(sql("work_known"), [provider] * len(ids), ids))
    return {ids[row["place"] - 1] for row in rows}
