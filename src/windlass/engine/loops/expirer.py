"""The expirer ends jobs that ran past their deadline (TIMEOUT) or their time to live (EXPIRED)."""

from __future__ import annotations

from typing import Self

import asyncpg

from windlass.core.control import overdue
from windlass.core.draft import Draft
from windlass.core.effect import MoveExpiry
from windlass.engine.loops.duty import Done, Earliest, Engine, EngineDuty
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql

BATCH_MAX = 100


async def _outlives(connection: asyncpg.Connection, draft: Draft) -> bool:
    """Move a default expiry if a child that the job waits for may live longer. Returns whether it moved."""
    if draft.job.expires_at is not None:
        until = await connection.fetchval(sql("job_outlived"), draft.job.id)
        if until is not None:
            draft.outlive(until)
    return bool(draft.effects_of(MoveExpiry))


class Expirer(EngineDuty):
    """Ends overdue jobs."""

    name = "expirer"
    due = Earliest("jobs", "due_at")

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """End one batch of overdue jobs. Each job has its own commit, because sweeping a wide job takes long."""
        rows = await self._db.run(lambda connection: connection.fetch(sql("job_overdue"), BATCH_MAX))
        for row in rows:

            async def operation(connection: asyncpg.Connection, row: asyncpg.Record = row) -> None:
                async with connection.transaction():
                    await drafts.lock(connection, [row["id"]])
                    draft = await drafts.load_open(connection, row["id"], (), lambda h: read_plan(connection, h))
                    if draft is not None:
                        draft.source = self.name
                        if await _outlives(connection, draft) and not row["is_deadline"]:
                            await connection.execute(sql("draft_prolong"), draft.job.id, draft.job.expires_at)
                            return
                        overdue(draft, is_deadline=row["is_deadline"])
                        await drafts.write(connection, [draft])

            await self._db.run(operation)
        return Done(len(rows), len(rows) >= BATCH_MAX)
