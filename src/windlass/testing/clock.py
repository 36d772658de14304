"""A clock that only moves when it is told to, so that hours pass in milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from windlass.recipe.duration import duration_s

# A moment far from the present: code that reads a real clock by mistake stands out.
START = datetime(2030, 1, 1, tzinfo=UTC)


class VirtualClock:
    """A clock for a database: pass it `clock.now`. It never goes back."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start

    def now(self) -> datetime:
        """Return the clock's time."""
        return self._now

    def now_ms(self) -> int:
        """Return the clock's time in milliseconds since 1970, for ids."""
        return int(self._now.timestamp() * 1000)

    def advance(self, by: float | str | timedelta) -> datetime:
        """Let time pass: seconds, a text such as "2h 30m", or a timedelta. Return the new time."""
        passed = by if isinstance(by, timedelta) else timedelta(seconds=duration_s(by, "advance"))
        if passed < timedelta(0):
            raise ValueError("a clock does not go back")
        self._now += passed
        return self._now

    def reach(self, moment: datetime) -> bool:
        """Move to this moment, unless it has passed; return whether the clock moved."""
        if moment <= self._now:
            return False
        self._now = moment
        return True
