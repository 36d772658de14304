"""Whether the database still has the history that positions in the feed were given for (engine/installation.py)."""

from __future__ import annotations

from collections.abc import Callable

from windlass.engine import installation
from windlass.store.database import Database

# How old the answer may be.
SAME_FOR_S = 5.0


class History:
    """Asks after every lost connection, and now and then: a promoted standby takes over by breaking connections."""

    def __init__(self, db: Database, epoch: int, clock: Callable[[], float]) -> None:
        self.epoch = epoch
        self._db = db
        self._clock = clock
        self._losses, self._asked_s = db.losses, clock()

    async def is_same(self) -> bool:
        """Whether positions still hold; when they do not, `epoch` is the new one from now on."""
        losses, now_s = self._db.losses, self._clock()
        if losses == self._losses and now_s - self._asked_s < SAME_FOR_S:
            return True
        epoch = (await installation.look(self._db)).epoch
        self._losses, self._asked_s = losses, now_s
        before, self.epoch = self.epoch, epoch
        return epoch == before
