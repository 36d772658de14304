"""The rescuer finds attempts that no worker runs any more.

It marks a worker whose lease has expired as lost, for good; the worker's attempts are settled as Lost and queued again.
If no engine could check for a while, the database was away and workers could not renew either. Then it prolongs the
leases before it marks a worker (`core/lease.py`). An attempt past its time limit whose worker lives but does not report
it (the worker hangs) is settled as a timeout. Both go through `settle` like every other report, so the late report of a
worker that was only slow is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import asyncpg

from windlass.core.lease import GAP_PART, RESCUE_AFTER_S, left_after
from windlass.core.outcome import ATTEMPT_TIMEOUT, Failure, Fault, Lost, Outcome, Report
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.engine.settle import settle
from windlass.store.database import Database
from windlass.store.statements import sql

BATCH_MAX = 500


class Rescuer(EngineDuty):
    """Marks lost workers and settles their attempts."""

    name = "rescuer"
    due = Due("worker_due", (GAP_PART, RESCUE_AFTER_S))

    def __init__(self, db: Database, spread: Callable[[], float]) -> None:
        self._db = db
        self._spread = spread

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db, engine.spread)

    async def run_once(self) -> Done:
        """Mark lost workers, and settle one batch of their attempts and of overdue attempts."""
        if not await self._db.run(lambda connection: connection.fetchval(sql("worker_mark_lost"), GAP_PART)):
            await self._db.run(_after_gap)
        rows = await self._db.run(lambda connection: connection.fetch(sql("step_lost"), BATCH_MAX, RESCUE_AFTER_S))
        reports = [
            Report(
                row["job_id"],
                row["no"],
                row["attempt"],
                _outcome(row["is_lost"]),
                source=self.name,
                plan_hash=row["plan"],
                node=row["node"],
                worker=row["worker"],
            )
            for row in rows
        ]
        if reports:
            await settle(self._db, reports, spread=self._spread)
        return Done(len(rows), len(rows) >= BATCH_MAX)


async def _after_gap(connection: asyncpg.Connection) -> None:
    """Prolong every lease by the time in which it could not be renewed, then mark workers whose lease has expired."""
    async with connection.transaction():
        gap_s = await connection.fetchval(sql("worker_look_lock"))
        rows = await connection.fetch(sql("worker_leases"))
        left = [left_after(row["left_s"], row["lease_s"], gap_s) for row in rows]
        await connection.execute(sql("worker_leases_put"), [row["id"] for row in rows], left)


def _outcome(is_lost: bool) -> Outcome:
    if is_lost:
        return Lost()
    return Failure(Fault(ATTEMPT_TIMEOUT, "the attempt ran past its time limit, and its worker hangs"))
