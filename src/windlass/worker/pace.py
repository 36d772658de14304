"""Controls how many attempts a worker holds at once, and how often it claims."""

from __future__ import annotations

import asyncio

from windlass.engine.claim import CLAIM_MAX

GATHER_S = 0.004
GATHER_MIN = 8
HAND_S = 0.05


class Pace:
    """The worker's capacity: its concurrency, or HAND_S worth of attempts if that is more.

    Steps that end sooner than a claim takes would leave the worker waiting for the database. So it holds a few more
    attempts than it can run, but only as many as will begin within HAND_S. A worker that `is_apart` never does.
    """

    def __init__(self, concurrency: int, *, is_apart: bool = False) -> None:
        self._concurrency = self.capacity = concurrency
        self._is_apart = is_apart
        self.ended = self._ended_before = 0
        self._took, self._claimed_s, self._measured_s = 0, 0.0, 0.0

    def measure(self) -> None:
        """Set the capacity from the number of attempts that ended lately."""
        now_s = asyncio.get_running_loop().time()
        if (span_s := now_s - self._measured_s) < HAND_S or self._is_apart:
            return
        swift = int((self.ended - self._ended_before) / span_s * HAND_S)
        self.capacity = max(self._concurrency, min(2 * CLAIM_MAX, swift))
        self._measured_s, self._ended_before = now_s, self.ended

    def claimed(self, took: int, now_s: float) -> None:
        """Record the size and time of a claim."""
        self._took, self._claimed_s = took, now_s

    async def gather(self, room: int) -> bool:
        """Under load, wait a moment before the next claim: one large claim is cheaper than many small ones.

        Does not wait after a claim that took one step, or that filled the room. Returns whether it waited: the room may
        have changed since.
        """
        early_s = self._claimed_s + GATHER_S - asyncio.get_running_loop().time()
        is_crowded = self.capacity > self._concurrency and room < self.capacity // 4
        if early_s > 0 and (is_crowded or GATHER_MIN <= self._took < room // 2):
            await asyncio.sleep(early_s)
            return True
        return False
