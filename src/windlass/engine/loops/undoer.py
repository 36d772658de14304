"""The undoer lets undo jobs go once no attempt of the job to be undone can act any more.

An attempt is over when it reports an end, when its worker was lost, or when its time limit and a grace period have
passed: the same moments at which the rescuer gives the step of an open job to another worker.
"""

from __future__ import annotations

from typing import Self

from windlass.core.bell import UndoDue
from windlass.core.lease import RESCUE_AFTER_S
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.engine.undo import end_waits
from windlass.store.database import Database

BATCH_MAX = 100


class Undoer(EngineDuty):
    """Releases undo jobs that wait for old attempts."""

    name = "undoer"
    bells = (UndoDue,)
    due = Due("undo_due", (RESCUE_AFTER_S,))

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """Release one batch of undo jobs."""
        count = await self._db.run(lambda connection: end_waits(connection, RESCUE_AFTER_S, BATCH_MAX, self.name))
        return Done(count, count >= BATCH_MAX)
