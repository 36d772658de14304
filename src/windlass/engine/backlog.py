"""How many steps of a caller may wait: fan-outs add their children as there is room for them.

A fan-out of 250,000 steps would fill the queues for everybody. So a caller has so much room. A fan-out that finds none
waits, READY, until steps of its caller have run. Nothing fails: its list is known, and its children come later.
Steps that wait for a slot count as well: a fan-out over a busy provider adds its children as the provider takes them.

Counting reads every waiting step, so it is done at most once in `COUNT_EVERY_S` seconds, and only for fan-outs of more
than `FREE_MAX` items. What the router adds in between is added to the count.
"""

from __future__ import annotations

from collections.abc import Callable

from windlass.store.database import Database
from windlass.store.statements import sql

BACKLOG_MAX = 25_000
# A fan-out of so few is never held up, and nothing is counted for it.
FREE_MAX = 1_000
COUNT_EVERY_S = 1.0


async def callers(db: Database, most: int) -> dict[str, int]:
    """Count the steps of each caller that wait for a worker, the router or a slot, `most` of each kind in all."""
    rows = await db.run(lambda connection: connection.fetch(sql("gauge_callers"), most))
    return {row["caller"]: row["count"] for row in rows}


class Backlog:
    """The waiting steps of all callers, as they were at the last count."""

    def __init__(self, db: Database, most: int, clock_s: Callable[[], float]) -> None:
        self._db = db
        self._most = most
        self._clock_s = clock_s
        self._counted_s = float("-inf")
        self._counts: dict[str, int] = {}
        # Callers that a fan-out found no room for.
        self.full: set[str] = set()

    async def refresh(self, *, at_once: bool = False) -> None:
        """Count again, if the last count is old or if it must be `at_once`."""
        if not at_once and self._clock_s() - self._counted_s < COUNT_EVERY_S:
            return
        # One caller's steps may all come last: so many are counted that a few full callers do not hide another.
        self._counts = await callers(self._db, 10 * self._most)
        self._counted_s = self._clock_s()
        self.full = {caller for caller in self.full if self._counts.get(caller, 0) >= self._most}

    def take(self, caller: str, count: int) -> bool:
        """Whether the caller may add these steps now. Any room that is left is enough for a batch."""
        if self._counts.get(caller, 0) >= self._most:
            self.full.add(caller)
            return False
        self._counts[caller] = self._counts.get(caller, 0) + count
        return True
