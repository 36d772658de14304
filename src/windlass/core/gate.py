"""How much may be asked of a provider now: its rate, its own word that it is busy, and a breaker for when it is silent.

The rate is kept as one time, `free_at`: when the next request would be due if requests came evenly. A request moves it
on by the rate's interval, whoever makes it, so all processes share one rate. A fast provider may be asked for several
at once, as many as a tenth of a second brings; in any `w` seconds there are at most `rate * w + burst` requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from windlass.core.breaker import Breaker

# The finest step of the database's clock.
_TICK = timedelta(microseconds=1)
BREAKER = Breaker(failures_max=5, open_s=30.0)


@dataclass(frozen=True, slots=True)
class Gate:
    """What decides whether a provider may be asked. The breaker's seconds are those since the epoch."""

    rate: float
    free_at: datetime | None = None
    paused_until: datetime | None = None
    breaker: Breaker = field(default=BREAKER)

    @property
    def burst(self) -> int:
        """How many requests may be made at once after a rest."""
        return max(1, int(self.rate / 10))

    @property
    def _interval(self) -> timedelta:
        # Rounded up: a rate is never exceeded.
        return timedelta(microseconds=math.ceil(1e6 / self.rate))

    def room(self, now: datetime) -> int:
        """How many requests may be made now."""
        if self.paused_until is not None and now < self.paused_until:
            return 0
        passes, tried = self.breaker.may_pass(now.timestamp())
        if not passes:
            return 0
        ahead = self._promised(now) - now
        by_rate = max(0, (self.burst * self._interval - ahead) // self._interval)
        return min(1, by_rate) if tried.is_open else by_rate

    def taken(self, count: int, now: datetime) -> Gate:
        """After so many requests, of those there was room for."""
        if count == 0:
            return self
        _, breaker = self.breaker.may_pass(now.timestamp())
        return replace(self, free_at=self._promised(now) + count * self._interval, breaker=breaker)

    def opens_at(self, now: datetime) -> datetime:
        """When there is room again, as far as is known; `now` if there is."""
        waits = [now, self._promised(now) - (self.burst - 1) * self._interval]
        if self.paused_until is not None:
            waits.append(self.paused_until)
        if not self.breaker.may_pass(now.timestamp())[0]:
            waits.append(now + timedelta(seconds=self.breaker.wait_s(now.timestamp())) + _TICK)
        return max(waits)

    def _promised(self, now: datetime) -> datetime:
        return now if self.free_at is None else max(self.free_at, now)
