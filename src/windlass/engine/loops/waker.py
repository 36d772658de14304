"""The waker resumes parked steps whose time has come: retries, snoozes, timers, and waits past their limit."""

from __future__ import annotations

from typing import Self
from uuid import UUID

import asyncpg

from windlass.core.draft import touched_by
from windlass.core.plan import NodeKind
from windlass.core.route import wake
from windlass.engine.loops.duty import Done, Earliest, Engine, EngineDuty
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql

BATCH_MAX = 500


class Waker(EngineDuty):
    """Wakes parked steps."""

    name = "waker"
    due = Earliest("steps", "wake_at", "PARKED")

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """Wake one batch of steps."""

        async def operation(connection: asyncpg.Connection) -> int:
            rows = await connection.fetch(sql("step_due"), BATCH_MAX)
            if not rows:
                return 0
            wanted: dict[UUID, set[int]] = {}
            for row in rows:
                plan = await read_plan(connection, row["plan"])
                # A timer cannot fail, so none of its dependents can be abandoned.
                is_timer = plan.nodes[row["node"]].kind is NodeKind.TIMER
                touched = touched_by(plan, row["no"], row["node"], is_success=is_timer)
                wanted.setdefault(row["job_id"], set()).update(touched)
            async with connection.transaction():
                await drafts.lock(connection, wanted)
                found = await drafts.load(connection, wanted, lambda h: read_plan(connection, h))
                by_job = {draft.job.id: draft for draft in found}
                for row in rows:
                    if (draft := by_job.get(row["job_id"])) is not None:
                        draft.source = self.name
                        wake(draft, row["no"])
                await drafts.write(connection, found)
            return len(rows)

        count = await self._db.run(operation)
        return Done(count, count >= BATCH_MAX)
