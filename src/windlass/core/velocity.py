"""Velocity: counts requests in a sliding window, in slices of a sixtieth of it.

The oldest slice counts as a whole while any part of it is inside the window. So no window ever holds more requests
than its limit; a request may be refused for up to a sixtieth of the window longer than with exact times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SLICES = 60


@dataclass(frozen=True, slots=True)
class VelocityWindow:
    """The counted requests of one counter, by the number of their slice."""

    length_s: float
    counts: Mapping[int, int]

    def count(self, now_s: float) -> int:
        """Return the number of requests in the window that ends now."""
        oldest = self._slice(now_s - self.length_s)
        return sum(count for at, count in self.counts.items() if at >= oldest)

    def add(self, count: int, now_s: float) -> VelocityWindow:
        """Return the window with more requests, counted now, and without slices that are over."""
        oldest, at = self._slice(now_s - self.length_s), self._slice(now_s)
        kept = {slice_: before for slice_, before in sorted(self.counts.items()) if slice_ >= oldest}
        return VelocityWindow(self.length_s, {**kept, at: kept.get(at, 0) + count})

    def _slice(self, at_s: float) -> int:
        return int(at_s * SLICES // self.length_s)
