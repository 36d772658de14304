"""The herald finds webhooks whose jobs have ended and makes them due; who sends them is not its business.

It follows the feed with a cursor of its own, which moves in the commit that makes the rows due: none is missed and
nothing is swept. Jobs without a webhook are looked past, within the database.
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


class Herald:
    """See the module."""

    name = "herald"

    def __init__(self, db: Database) -> None:
        self._db = db

    async def run_once(self) -> Done:
        """Look at one batch of the feed; how many became due."""

        async def operation(connection: asyncpg.Connection) -> Any:
            row = await connection.fetchrow(sql("herald_look"), BATCH_MAX, _ENDINGS)
            row = row if row["is_begun"] else await connection.fetchrow(sql("herald_begin"))
            if row["due"]:
                connection.ring(DeliveryDue())
            return row

        row = await self._db.run(operation)
        return Done(row["due"], row["told"] >= BATCH_MAX)
