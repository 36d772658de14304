"""The warden judges open jobs again: all of them after a publish, and throttled ones when their time has come.

A claim judges stale jobs itself, so no step waits for the warden, and no denied job runs before the warden comes. The
warden ends the denied jobs that no claim would see, and spares the claims the work. It goes through the open jobs once
for each floor, in the order in which they are due. `policy_now.swept` is the floor of the last whole pass.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self
from uuid import UUID

from windlass.core.bell import PolicyPublished
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.engine.recheck import recheck
from windlass.store.database import Database
from windlass.store.statements import sql

BATCH_MAX = 1_000
# One page of a pass looks at this many open jobs.
PAGE_MAX = 5_000
_START = (datetime.min.replace(tzinfo=UTC), UUID(int=0))


class Warden(EngineDuty):
    """Judges open jobs again."""

    name = "warden"
    bells = (PolicyPublished,)
    due = Due("verdict_due")

    def __init__(self, db: Database) -> None:
        self._db = db
        # The floor of the pass under way, and the last job that it looked at.
        self._floor = 0
        self._at = _START

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """Ask about one batch of throttled jobs, and go on with the pass after a publish."""
        now = await self._db.run(lambda connection: connection.fetchrow(sql("verdict_now")))
        if now["no"] == 0:
            return Done(0)
        rows = await self._db.run(lambda connection: connection.fetch(sql("verdict_asked"), BATCH_MAX))
        await recheck(self._db, [row["id"] for row in rows])
        count, is_more = await self._sweep(now["floor"]) if now["swept"] < now["floor"] else (0, False)
        return Done(len(rows) + count, is_more or len(rows) >= BATCH_MAX)

    async def _sweep(self, floor: int) -> tuple[int, bool]:
        """Judge the stale jobs of one page. Returns how many there were, and whether the pass goes on."""
        if floor != self._floor:
            self._floor, self._at = floor, _START
        page = await self._db.run(lambda connection: connection.fetchrow(sql("verdict_stale"), *self._at, PAGE_MAX))
        ids = page["ids"] if page is not None else []
        for start in range(0, len(ids), BATCH_MAX):
            await recheck(self._db, ids[start : start + BATCH_MAX])
        if page is not None and page["looked"] >= PAGE_MAX:
            self._at = (page["due_at"], page["id"])
            return max(1, len(ids)), True
        await self._db.run(lambda connection: connection.execute(sql("verdict_swept"), floor))
        self._at = _START
        return len(ids), False
