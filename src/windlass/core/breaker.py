"""A circuit breaker as a value. After several failures in a row it blocks all calls, then admits probes.

    closed ──(failures_max in a row)──► open ──(open_s later)──► half-open: probes_max may pass
       ▲                                 ▲                            │
       └──────────── a success ──────────┼────────────────────────────┤
                                         └───────── a failure ────────┘

A probe that never reports its end (its task was cancelled) blocks nothing: `open_s` later the next probe may pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Breaker:
    """A breaker's state. Times are seconds of any clock that never goes back; the caller passes them in."""

    failures_max: int = 3
    open_s: float = 30.0
    probes_max: int = 1
    failures: int = 0
    # The time at which the breaker opened, or at which the last round of probes began.
    opened_s: float | None = None
    probes: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether the breaker is open or half-open."""
        return self.opened_s is not None

    def may_pass(self, now_s: float) -> tuple[bool, Breaker]:
        """Return whether a call may be made now, and the breaker after this decision."""
        if self.opened_s is None:
            return True, self
        if now_s >= self.opened_s + self.open_s:
            return True, replace(self, opened_s=now_s, probes=1)
        if 0 < self.probes < self.probes_max:
            return True, replace(self, probes=self.probes + 1)
        return False, self

    def succeeded(self) -> Breaker:
        """Return the closed breaker after a successful call."""
        return replace(self, failures=0, opened_s=None, probes=0)

    def failed(self, now_s: float) -> Breaker:
        """Return the breaker after a failed call. A failure of an open breaker restarts its wait."""
        failures = self.failures + 1
        if self.opened_s is None and failures < self.failures_max:
            return replace(self, failures=failures)
        return replace(self, failures=failures, opened_s=now_s, probes=0)

    def wait_s(self, now_s: float) -> float:
        """Return the known time in seconds until a call may pass; 0 if a call may pass now."""
        return 0.0 if self.opened_s is None else max(0.0, self.opened_s + self.open_s - now_s)
