"""The depth of the queues: counted at most once a second, for admission and for dashboards.

Three limits, in the order of the checks:

    limit                          above it
    a caller's own depth           that caller's submits are refused
    the depth of all queues        submits of callers above their share are refused
    twice the depth of all queues  every submit is refused

A caller's own depth counts its QUEUED and READY steps, and the HELD steps that wait for a slot. HELD steps are in no
queue: a caller that only uses a busy provider would otherwise add rows without limit. The depth of all queues counts
QUEUED steps only, because a slow provider must not stop the callers that do not use it.

A caller's share is the depth divided by one more than the number of callers with waiting steps. So no caller uses up
the share of another. Counting by caller reads every waiting step. It is done only when more steps wait than one caller
may have.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from windlass.core.errors import Busy
from windlass.engine import backlog
from windlass.store.database import Database
from windlass.views import gauge

LOOK_EVERY_S = 1.0
RETRY_AFTER_S = 30.0


class Depth:
    """The depth of the queues. Submits within a second of the last count may exceed it."""

    def __init__(
        self,
        db: Database,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        per_caller_max: int | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._looked_s = float("-inf")
        self._counted_s = float("-inf")
        self._looking = asyncio.Lock()
        self.most = most
        self.per_caller_max = most if per_caller_max is None else min(per_caller_max, most)
        # By queue: the number of waiting steps (counted up to twice `most`, plus one), and the age of the oldest job.
        self.last: dict[str, tuple[int, float]] = {}
        # The number of steps that wait for a slot, counted up to the same limit.
        self._held = 0
        self._callers: dict[str, int] = {}

    async def look(self) -> dict[str, tuple[int, float]]:
        """Return the depths of at most a second ago."""
        if self._is_stale(self._looked_s):
            async with self._looking:
                if self._is_stale(self._looked_s):
                    queues, self._held = await gauge.queues_and_held(self._db, 2 * self.most + 1)
                    self.last = dict(queues)
                    self._looked_s = self._clock()
        return self.last

    async def check(self, caller: str, *, is_internal: bool = False) -> None:
        """Raise Busy when too many steps wait. The caller's own limit does not apply to an internal caller."""
        queued = sum(count for count, _ in (await self.look()).values())
        if queued + self._held <= min(self.per_caller_max, self.most):
            return
        counts = await self._by_caller()
        own = counts.get(caller, 0)
        if not is_internal and own > self.per_caller_max:
            raise Busy(
                f"more than {self.per_caller_max} steps of this caller wait already",
                retry_after_s=RETRY_AFTER_S,
                remedy="Try again when some of them have run, or start more workers",
            )
        share = self.most // (len(counts) + 1)
        if queued > 2 * self.most or (queued > self.most and own > share):
            raise Busy(
                f"more than {self.most} steps wait in the queues already",
                retry_after_s=RETRY_AFTER_S,
                remedy="Try again later, or start more workers",
            )

    async def _by_caller(self) -> dict[str, int]:
        if self._is_stale(self._counted_s):
            async with self._looking:
                if self._is_stale(self._counted_s):
                    self._callers = await backlog.callers(self._db, 2 * self.most + 1)
                    self._counted_s = self._clock()
        return self._callers

    def _is_stale(self, at_s: float) -> bool:
        return self._clock() - at_s >= LOOK_EVERY_S
