"""The adopter gives jobs that were submitted under an id of ours to the name that Membership gave their caller since.

A job moves in one commit with its webhook, a bounded batch at a time. The records of the audit keep the id under which
things were done; the record `caller_adopted` joins the two.
"""

from __future__ import annotations

from typing import Self

from windlass.engine.loops.duty import Done, Engine, EngineDuty
from windlass.store.database import Database
from windlass.store.statements import sql

BATCH_MAX = 500
IDS_MAX = 100
ADOPT_EVERY_S = 10.0


class Adopter(EngineDuty):
    """See the module."""

    name = "adopter"
    every_s = ADOPT_EVERY_S

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """The duty, from what the engine has."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """Move one batch of each id's jobs."""
        moved, is_more = 0, False
        for row in await self._db.run(lambda connection: connection.fetch(sql("caller_adopted"), IDS_MAX)):
            count = await self._move(row["caller"], row["adopted_by"])
            moved, is_more = moved + count, is_more or count >= BATCH_MAX
        return Done(moved, is_more)

    async def _move(self, caller: str, adopted_by: str) -> int:
        values = (caller, adopted_by, BATCH_MAX)
        return int(await self._db.run(lambda connection: connection.fetchval(sql("caller_take_over"), *values)))
