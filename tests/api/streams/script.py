"""Histories for streams to tell: jobs of the engine, driven by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg

from tests.engine.rig import Rig, plan, task, undisturbed
from windlass.core.outcome import Report, Success
from windlass.engine import feed, settle
from windlass.pure.cursor import ORIGIN, arrange, feed_id
from windlass.store.database import Database

ONE = plan(task("one"), recipe="one")


async def submit(rig: Rig, caller: str = "ann", **more: Any) -> UUID:
    return await rig.submit(ONE, caller=caller, **{"correlation_id": "request", **more})


async def finish(rig: Rig, limit: int = 500) -> int:
    """Run all queued steps; every job of ONE tells submitted, processing, completed."""
    taken = await rig.claim(limit)
    reports = [Report(one.job_id, one.no, one.attempt, Success("1")) for one in taken]
    if reports:
        await settle.settle(rig.db, reports, spread=lambda: 0.0)
    return len(taken)


async def told(db: Database, caller: str | None = "ann", epoch: int = 1) -> list[str]:
    """The ids of everything that the feed has to tell a caller, in order: what streams are measured by."""
    await undisturbed(db)
    rows, _ = await feed.after(db, ORIGIN, callers=None if caller is None else [caller], limit=1_000_000)
    return [feed_id(epoch, place) for _, place in arrange(rows, lambda row: row.at, ORIGIN)]


async def write_event(connection: asyncpg.Connection, job: UUID, seq: int, event: str = "job.paused") -> int:
    """An event written by hand, in the transaction that is open; returns the transaction's number."""
    await connection.execute(
        "INSERT INTO windlass.events (job_id, seq, at, type, source, correlation_id)"
        " VALUES ($1, $2, windlass.clock(), $3, 'test', 'request')",
        job,
        seq,
        event,
    )
    return int(await connection.fetchval("SELECT pg_current_xact_id()::text"))
