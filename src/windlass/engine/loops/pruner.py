"""The pruner removes finished jobs after the retention time, and other expired rows, in bounded batches.

Records of the audit are never removed.
"""

from __future__ import annotations

from typing import Self

from windlass.engine.loops.duty import Done, Engine, EngineDuty
from windlass.store.database import Database
from windlass.store.statements import sql

BATCH_MAX = 500
EVENTS_MAX = 5_000
PRUNE_EVERY_S = 60.0
RETENTION_S = 30 * 86400.0


class Pruner(EngineDuty):
    """Removes expired rows."""

    name = "pruner"
    every_s = PRUNE_EVERY_S

    def __init__(self, db: Database, retention_s: float = RETENTION_S) -> None:
        self._db = db
        self._retention_s = retention_s

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db, engine.retention_s)

    async def run_once(self) -> Done:
        """Remove one batch of jobs. When none is left, remove other expired rows: old workers, tickets, sessions."""
        rows = await self._db.run(lambda connection: connection.fetch(sql("prune"), self._retention_s, BATCH_MAX))
        if not rows:
            await self._db.run(lambda connection: connection.execute(sql("worker_forget")))
            await self._db.run(lambda connection: connection.execute(sql("engine_forget")))
            await self._db.run(lambda connection: connection.execute(sql("ticket_forget"), BATCH_MAX))
            await self._db.run(lambda connection: connection.execute(sql("console_forget"), BATCH_MAX))
            await self._db.run(lambda connection: connection.execute(sql("limit_forget"), BATCH_MAX))
            await self._db.run(lambda connection: connection.execute(sql("velocity_forget"), BATCH_MAX))
            return await self._forget_events()
        return Done(len(rows), len(rows) >= BATCH_MAX)

    async def _forget_events(self) -> Done:
        """Remove old provider events.

        The event of a job's work is removed with the job, or earlier. Events about unknown work belong to no job, and
        there may be any number of them.
        """
        count = await self._db.run(
            lambda connection: connection.fetchval(sql("event_forget"), self._retention_s, EVENTS_MAX)
        )
        return Done(count, count >= EVENTS_MAX)
