"""The webhook scheduler finds webhooks whose jobs have ended and makes them due. The webhook sender sends them.

It follows the feed with its own cursor, which moves in the commit that makes the rows due: no job is missed, and no
table is swept. The statement skips jobs without a webhook inside the database.
"""

from __future__ import annotations

from typing import Any

import asyncpg

from windlass.core.bell import DeliveryDue
from windlass.core.states import JOB_TERMINAL
from windlass.engine.loops.duty import Done
from windlass.store.database import Database
from windlass.store.statements import sql

BATCH_MAX = 5_000
_ENDINGS = sorted(f"job.{state.lower()}" for state in JOB_TERMINAL)


class WebhookScheduler:
    """Makes the webhooks of ended jobs due."""

    name = "webhook_scheduler"

    def __init__(self, db: Database) -> None:
        self._db = db

    async def run_once(self) -> Done:
        """Read one batch of the feed. Returns how many webhooks became due."""

        async def operation(connection: asyncpg.Connection) -> Any:
            row = await connection.fetchrow(sql("webhook_schedule"), BATCH_MAX, _ENDINGS)
            row = row if row["is_begun"] else await connection.fetchrow(sql("webhook_schedule_begin"))
            if row["due"]:
                connection.ring(DeliveryDue())
            return row

        row = await self._db.run(operation)
        return Done(row["due"], row["told"] >= BATCH_MAX)
