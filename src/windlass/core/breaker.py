"""A circuit breaker as a value. After several failures in a row it blocks all calls, then admits probes.

    closed ──(failures_max in a row)──► open ──(open_s later)──► half-open: probes_max may pass
       ▲                                 ▲                            │
       └── closes_after successes ───────┼────────────────────────────┤
                                         └───────── a failure ────────┘

A probe that never reports its end (its task was cancelled) blocks nothing: `open_s` later the next probes may pass.

Calls may end late. A call that was admitted before the breaker opened says nothing about the time since. So a report
may name its `round`, and a report of an earlier round changes nothing while the breaker is not closed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Breaker:
    """A breaker's state. Times are seconds of any clock that never goes back; the caller passes them in."""

    failures_max: int = 3
    open_s: float = 30.0
    probes_max: int = 1
    # The number of good probes of one round that closes the breaker.
    closes_after: int = 1
    failures: int = 0
    # The time at which the breaker opened, or at which the last round of probes began.
    opened_s: float | None = None
    probes: int = 0
    successes: int = 0
    # Grows when the breaker opens, and when probes begin.
    round: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether the breaker is open or half-open."""
        return self.opened_s is not None

    def may_pass(self, now_s: float) -> tuple[bool, Breaker]:
        """Return whether a call may be made now, and the breaker after this decision."""
        if self.opened_s is None:
            return True, self
        if now_s >= self.opened_s + self.open_s:
            return True, replace(self, opened_s=now_s, probes=1, successes=0, round=self.round + 1)
        if 0 < self.probes < self.probes_max:
            return True, replace(self, probes=self.probes + 1)
        return False, self

    def admit(self, wanted: int, now_s: float) -> tuple[int, Breaker]:
        """Return how many of the wanted calls may be made now, and the breaker after this decision."""
        if not self.is_open:
            return wanted, self
        breaker, count = self, 0
        while count < min(wanted, self.probes_max):
            passes, breaker = breaker.may_pass(now_s)
            if not passes:
                break
            count += 1
        return count, breaker

    def succeeded(self, round: int | None = None) -> Breaker:
        """Return the breaker after a successful call of a round."""
        if self._is_late(round):
            return self
        if self.is_open and self.successes + 1 < self.closes_after:
            return replace(self, successes=self.successes + 1)
        return replace(self, failures=0, opened_s=None, probes=0, successes=0)

    def failed(self, now_s: float, round: int | None = None) -> Breaker:
        """Return the breaker after a failed call of a round. A failure of an open breaker restarts its wait."""
        if self._is_late(round):
            return self
        failures = self.failures + 1
        if self.opened_s is None and failures < self.failures_max:
            return replace(self, failures=failures)
        return replace(self, failures=failures, opened_s=now_s, probes=0, successes=0, round=self.round + 1)

    def wait_s(self, now_s: float) -> float:
        """Return the known time in seconds until a call may pass; 0 if a call may pass now."""
        return 0.0 if self.opened_s is None else max(0.0, self.opened_s + self.open_s - now_s)

    def _is_late(self, round: int | None) -> bool:
        """Return whether a call of this round was admitted before the breaker opened, or as an earlier probe."""
        return round is not None and self.is_open and round != self.round
