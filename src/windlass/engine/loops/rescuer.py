"""The rescuer finds attempts that nobody runs any more.

A worker whose lease ran out is marked lost, once and for good; its attempts are settled as Lost and queued again. If no
engine could look for a while, the database was away: workers could not renew either, so their leases are prolonged
before a worker is marked (core/lease.py). An attempt that outran its time limit, whose worker lives but does not say so
(it hangs), is settled as a timeout. Both go through the same door as every other report, so a worker that was only slow
finds its late report refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import asyncpg

from windlass.core.lease import GAP_PART, left_after
from windlass.core.outcome import Failure, Fault, Lost, Outcome, Report
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.engine.settle import settle
from windlass.store.database import Database
from windlass.store.statements import sql

BATCH_MAX = 500
# The worker ends an attempt at its limit by itself; it gets this long to say so.
GRACE_S = 5.0


class Rescuer(EngineDuty):
    """See the module."""

    name = "rescuer"
    due = Due("due_rescuer", (GAP_PART, GRACE_S))

    def __init__(self, db: Database, chance: Callable[[], float]) -> None:
        self._db = db
        self._chance = chance

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """The duty, from what the engine has."""
        return cls(engine.db, engine.chance)

    async def run_once(self) -> Done:
        """Mark the lost, and settle one batch of what they held."""
        if not await self._db.run(lambda connection: connection.fetchval(sql("worker_mark_lost"), GAP_PART)):
            await self._db.run(_after_gap)
        rows = await self._db.run(lambda connection: connection.fetch(sql("step_lost"), BATCH_MAX, GRACE_S))
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
            await settle(self._db, reports, chance=self._chance)
        return Done(len(rows), len(rows) >= BATCH_MAX)


async def _after_gap(connection: asyncpg.Connection) -> None:
    """Prolong every lease by the time in which it could not be renewed, and mark the workers whose lease is over."""
    async with connection.transaction():
        gap_s = await connection.fetchval(sql("worker_look_lock"))
        rows = await connection.fetch(sql("worker_leases"))
        left = [left_after(row["left_s"], row["lease_s"], gap_s) for row in rows]
        await connection.execute(sql("worker_leases_put"), [row["id"] for row in rows], left)


def _outcome(is_lost: bool) -> Outcome:
    return Lost() if is_lost else Failure(Fault("timeout", "the attempt ran past its time limit, and its worker hangs"))
