"""A clock that only moves when it is told to, so that hours pass in milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from windlass.recipe.duration import duration_s

# A moment far from any real one: whatever reads a real clock by mistake stands out.
START = datetime(2030, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Hand `clock.now` to a database as its clock. It never goes back."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start

    def now(self) -> datetime:
        """The moment it shows."""
        return self._now

    def now_ms(self) -> int:
        """The same in milliseconds since 1970, as ids want it."""
        return int(self._now.timestamp() * 1000)

    def advance(self, by: float | str | timedelta) -> datetime:
        """Let time pass: seconds, a text such as "2h 30m", or a timedelta. Returns the new moment."""
        passed = by if isinstance(by, timedelta) else timedelta(seconds=duration_s(by, "advance"))
        if passed < timedelta(0):
            raise ValueError("a clock does not go back")
        self._now += passed
        return self._now

    def reach(self, moment: datetime) -> bool:
        """Move on to this moment, unless it is past already; says whether the clock moved."""
        if moment <= self._now:
            return False
        self._now = moment
        return True
