"""The escalator lets more people vote on approvals that wait too long, and denies jobs that were not approved in time.

The waker ends the wait of a step whose approval has expired, as it ends all timed waits of steps.
"""

from __future__ import annotations

from typing import Self

from windlass.engine import approvals
from windlass.engine.loops.duty import Done, Earliest, Engine, EngineDuty
from windlass.store.database import Database
from windlass.store.statements import sql

BATCH_MAX = 100


class Escalator(EngineDuty):
    """Escalates and expires approvals."""

    name = "escalator"
    due = Earliest("approvals", "due_at", "PENDING")

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """Deal with one batch of approvals that are due, each in its own commit."""
        rows = await self._db.run(lambda connection: connection.fetch(sql("approval_overdue"), BATCH_MAX))
        for row in rows:
            await approvals.come_due(self._db, row["id"], row["job_id"], self.name)
        return Done(len(rows), len(rows) >= BATCH_MAX)
