"""The waker takes up parked steps whose time has come: retries, snoozes, timers, and waits that lasted too long."""

from __future__ import annotations

from typing import Self
from uuid import UUID

import asyncpg

from windlass.core.draft import touched_by
from windlass.core.plan import NodeKind
from windlass.core.route import wake
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql

BATCH_MAX = 500


class Waker(EngineDuty):
    """See the module."""

    name = "waker"
    due = Due("due_waker")

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """The duty, from what the engine has."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """Wake one batch."""

        async def operation(connection: asyncpg.Connection) -> int:
            rows = await connection.fetch(sql("step_due"), BATCH_MAX)
            if not rows:
                return 0
            wanted: dict[UUID, set[int]] = {}
            for row in rows:
                plan = await read_plan(connection, row["plan"])
                # A timer cannot fail, and so abandons nothing that comes after it.
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
