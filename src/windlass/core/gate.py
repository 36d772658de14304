"""Decides how many requests a provider or a kernel may get now, from its rate limit, pause and circuit breaker.

`free_at` stores the rate limit as one time: the next request's due time if requests came evenly. Every request advances
it by the rate's interval, in any process, so all processes share one rate. A fast provider accepts several requests at
once: the requests of a tenth of a second. Any `w` seconds contain at most `rate * w + burst` requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from windlass.core.breaker import Breaker

# The resolution of the database's clock.
_TICK = timedelta(microseconds=1)
BREAKER = Breaker(failures_max=5, open_s=30.0)
# The breaker of a kernel that judges requests.
KERNEL_BREAKER = Breaker(failures_max=3, open_s=30.0, probes_max=3, closes_after=2)


@dataclass(frozen=True, slots=True)
class Gate:
    """The rate, pause and breaker of one provider or kernel. The breaker counts seconds since the epoch."""

    rate: float
    free_at: datetime | None = None
    paused_until: datetime | None = None
    breaker: Breaker = field(default=BREAKER)

    @property
    def burst(self) -> int:
        """The number of requests that may be sent at once after an idle time."""
        return max(1, int(self.rate / 10))

    @property
    def _interval(self) -> timedelta:
        # Rounded up, so that requests never exceed the rate.
        return timedelta(microseconds=math.ceil(1e6 / self.rate))

    def room(self, now: datetime) -> int:
        """Return how many requests may be sent now."""
        if self.paused_until is not None and now < self.paused_until:
            return 0
        ahead = self._promised(now) - now
        by_rate = max(0, (self.burst * self._interval - ahead) // self._interval)
        room, _ = self.breaker.admit(by_rate, now.timestamp())
        return room

    def taken(self, count: int, now: datetime) -> Gate:
        """Return the gate after `count` requests; `count` is at most `room`."""
        if count == 0:
            return self
        _, breaker = self.breaker.admit(count, now.timestamp())
        return replace(self, free_at=self._promised(now) + count * self._interval, breaker=breaker)

    def opens_at(self, now: datetime) -> datetime:
        """Return the earliest known time at which a request may be sent; `now` if one may be sent now."""
        waits = [now, self._promised(now) - (self.burst - 1) * self._interval]
        if self.paused_until is not None:
            waits.append(self.paused_until)
        if not self.breaker.may_pass(now.timestamp())[0]:
            waits.append(now + timedelta(seconds=self.breaker.wait_s(now.timestamp())) + _TICK)
        return max(waits)

    def _promised(self, now: datetime) -> datetime:
        return now if self.free_at is None else max(self.free_at, now)
