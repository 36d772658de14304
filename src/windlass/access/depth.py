"""How much waits in the queues: looked at once a second at most, for admission and for those who watch.

More than the limit and submits are refused, whoever asks: what would only wait is better kept by the caller.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from windlass.core.errors import Busy
from windlass.store.database import Database
from windlass.store.statements import sql

LOOK_EVERY_S = 1.0
RETRY_AFTER_S = 30.0


class Depth:
    """The queues' depth. Between two looks it may be passed by what comes in within a second."""

    def __init__(self, db: Database, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._clock = clock
        self._looked_s = float("-inf")
        self._looking = asyncio.Lock()
        self.most = most
        # By queue: how many steps wait (counted up to one more than `most`), and how many seconds the oldest job has.
        self.last: dict[str, tuple[int, float]] = {}

    async def look(self) -> dict[str, tuple[int, float]]:
        """The depths as they were within the last second."""
        if self._is_stale():
            async with self._looking:
                if self._is_stale():
                    rows = await self._db.run(lambda connection: connection.fetch(sql("gauge_queues"), self.most + 1))
                    self.last = {row["queue"]: (row["count"], row["age_s"]) for row in rows}
                    self._looked_s = self._clock()
        return self.last

    async def check(self) -> None:
        """Raise Busy when more waits than may."""
        waiting = sum(count for count, _ in (await self.look()).values())
        if waiting > self.most:
            raise Busy(
                f"more than {self.most} steps wait in the queues already",
                retry_after_s=RETRY_AFTER_S,
                remedy="Try again later, or start more workers",
            )

    def _is_stale(self) -> bool:
        return self._clock() - self._looked_s >= LOOK_EVERY_S
