"""Checks whether the database still has the history that feed positions were issued for (engine/installation.py)."""

from __future__ import annotations

from collections.abc import Callable

from windlass.engine import installation
from windlass.store.database import Database

# How old the result may be.
SAME_FOR_S = 5.0


class History:
    """Checks after every lost connection and periodically: a promoted standby takes over by breaking connections."""

    def __init__(self, db: Database, epoch: int, clock: Callable[[], float]) -> None:
        self.epoch = epoch
        self._db = db
        self._clock = clock
        self._losses, self._asked_s = db.losses, clock()

    async def is_same(self) -> bool:
        """Return whether positions are still valid. If they are not, `epoch` becomes the new epoch."""
        losses, now_s = self._db.losses, self._clock()
        if losses == self._losses and now_s - self._asked_s < SAME_FOR_S:
            return True
        epoch = (await installation.look(self._db)).epoch
        self._losses, self._asked_s = losses, now_s
        before, self.epoch = self.epoch, epoch
        return epoch == before
