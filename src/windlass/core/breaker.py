"""A circuit breaker as a value: after some failures in a row it lets nothing through, then one at a time to try.

    closed ──(failures_max in a row)──► open ──(open_s later)──► half-open: probes_max may pass
       ▲                                 ▲                            │
       └──────────── a success ──────────┼────────────────────────────┤
                                         └───────── a failure ────────┘

A probe whose end is never told (its task was cancelled) holds nothing up: `open_s` later the next one may pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Breaker:
    """Times are the caller's, in seconds of any clock that does not go back."""

    failures_max: int = 3
    open_s: float = 30.0
    probes_max: int = 1
    failures: int = 0
    # When it opened, or when the last round of probes began.
    opened_s: float | None = None
    probes: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it is anything but closed."""
        return self.opened_s is not None

    def may_pass(self, now_s: float) -> tuple[bool, Breaker]:
        """Whether a call may be made now, and the breaker after that answer."""
        if self.opened_s is None:
            return True, self
        if now_s >= self.opened_s + self.open_s:
            return True, replace(self, opened_s=now_s, probes=1)
        if 0 < self.probes < self.probes_max:
            return True, replace(self, probes=self.probes + 1)
        return False, self

    def succeeded(self) -> Breaker:
        """A call was answered: closed."""
        return replace(self, failures=0, opened_s=None, probes=0)

    def failed(self, now_s: float) -> Breaker:
        """A call was not answered. While it is open, that begins the wait again."""
        failures = self.failures + 1
        if self.opened_s is None and failures < self.failures_max:
            return replace(self, failures=failures)
        return replace(self, failures=failures, opened_s=now_s, probes=0)

    def wait_s(self, now_s: float) -> float:
        """How long until a call may pass, as far as is known; 0 when one may now."""
        return 0.0 if self.opened_s is None else max(0.0, self.opened_s + self.open_s - now_s)
