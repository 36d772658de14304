"""Turns among callers that share a slow resource: start-time fair queueing.

Each caller has its own queue and clock. The clock advances by the seconds that the caller's work took, and the caller
whose clock is furthest behind goes first. A new caller starts at the time of the work that began last. So a caller with
quick work passes callers with slow work and long queues, and every caller gets its turn.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """The queues of all callers. Not thread-safe: its owner must hold a lock."""

    def __init__(self, per_caller_max: int) -> None:
        self._per_caller_max = per_caller_max
        self._lines: dict[str, deque[T]] = {}
        self._running: Counter[str] = Counter()
        self._clocks_s: dict[str, float] = {}
        self._now_s = 0.0

    def put(self, caller: str, item: T) -> None:
        """Add an item to its caller's queue."""
        if caller not in self._lines:
            self._lines[caller] = deque()
            self._clocks_s[caller] = max(self._clocks_s.get(caller, 0.0), self._now_s)
        self._lines[caller].append(item)

    def take(self) -> tuple[str, T] | None:
        """Take the next item and its caller until `done`; None if no caller with a free place has an item."""
        free = [caller for caller in self._lines if self._running[caller] < self._per_caller_max]
        if not free:
            return None
        caller = min(free, key=self._clocks_s.__getitem__)
        self._now_s = max(self._now_s, self._clocks_s[caller])
        self._running[caller] += 1
        item = self._lines[caller].popleft()
        if not self._lines[caller]:
            del self._lines[caller]
        return caller, item

    def done(self, caller: str, seconds: float) -> None:
        """Record that an item of this caller is done and took this long."""
        self._clocks_s[caller] += seconds
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        if not self._running and not self._lines:
            # No caller is left, so the clocks may restart.
            self._clocks_s.clear()
            self._now_s = 0.0
