"""Turns among callers who share something that takes time: start-time fair queueing.

Each caller has a line and a clock of its own, which moves by the seconds that its work took. The caller whose clock is
furthest back goes first; a caller that comes anew starts at the time of the work that began last. So a caller with
quick work passes callers with slow work, however long their lines are, and every caller gets its turn.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """The lines of all callers. Not safe for threads: its owner has a lock."""

    def __init__(self, per_caller_max: int) -> None:
        self._per_caller_max = per_caller_max
        self._lines: dict[str, deque[T]] = {}
        self._running: Counter[str] = Counter()
        self._clocks_s: dict[str, float] = {}
        self._now_s = 0.0

    def put(self, caller: str, item: T) -> None:
        """Let an item wait in its caller's line."""
        if caller not in self._lines:
            self._lines[caller] = deque()
            self._clocks_s[caller] = max(self._clocks_s.get(caller, 0.0), self._now_s)
        self._lines[caller].append(item)

    def take(self) -> tuple[str, T] | None:
        """The next item and its caller, until `done`; None if nothing waits, or only callers with all their places."""
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
        """An item of this caller is done, and took so long."""
        self._clocks_s[caller] += seconds
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        if not self._running and not self._lines:
            # Nobody is left to take turns with.
            self._clocks_s.clear()
            self._now_s = 0.0
