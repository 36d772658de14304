"""Limits how many steps of a caller may wait. Fan-outs add their children while the caller has room.

A fan-out of 250,000 steps would fill the queues for all callers, so each caller has limited room. A fan-out without
room stays READY until steps of its caller have run. Nothing fails: the list of items is known, and the children are
added later. Steps that wait for a slot count as well: a fan-out over a busy provider adds its children as the provider
takes them.

Counting reads every waiting step. The count is therefore taken at most once in `COUNT_EVERY_S` seconds, and only for
fan-outs of more than `FREE_MAX` items. Steps that the router adds in between are added to the count.
"""

from __future__ import annotations

from collections.abc import Callable

from windlass.store.database import Database
from windlass.store.statements import sql

BACKLOG_MAX = 25_000
# Smaller fan-outs are never delayed, and need no count.
FREE_MAX = 1_000
COUNT_EVERY_S = 1.0


async def callers(db: Database, most: int) -> dict[str, int]:
    """Count each caller's steps that wait for a worker, the router or a slot. Counts `most` of each kind in total."""
    rows = await db.run(lambda connection: connection.fetch(sql("gauge_callers"), most))
    return {row["caller"]: row["count"] for row in rows}


class Backlog:
    """The waiting steps of all callers as of the last count."""

    def __init__(self, db: Database, most: int, clock_s: Callable[[], float]) -> None:
        self._db = db
        self._most = most
        self._clock_s = clock_s
        self._counted_s = float("-inf")
        self._counts: dict[str, int] = {}
        # Callers whose fan-outs found no room.
        self.full: set[str] = set()

    async def refresh(self, *, at_once: bool = False) -> None:
        """Count again if the last count is old, or if `at_once` is set."""
        if not at_once and self._clock_s() - self._counted_s < COUNT_EVERY_S:
            return
        # The count stops at a total, and one caller's steps may all come last. The factor keeps a few full callers from
        # hiding others.
        self._counts = await callers(self._db, 10 * self._most)
        self._counted_s = self._clock_s()
        self.full = {caller for caller in self.full if self._counts.get(caller, 0) >= self._most}

    def take(self, caller: str, count: int) -> bool:
        """Report whether the caller may add these steps now. Any remaining room is enough for a whole batch."""
        if self._counts.get(caller, 0) >= self._most:
            self.full.add(caller)
            return False
        self._counts[caller] = self._counts.get(caller, 0) + count
        return True
