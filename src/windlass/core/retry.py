"""When to try again: a policy, the waits of the source documents as presets, and one decision that is a value."""

from __future__ import annotations

from dataclasses import dataclass

# A worker that dies takes its attempts with it. Those do not count against a step's own policy, or one deploy would
# fail every job with max_attempts=1; but a step that keeps killing its worker must end.
LOSSES_MAX = 5


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow by `factor` from `base_s` up to `cap_s`; `jitter` is the share of a wait that chance may add."""

    base_s: float
    factor: float = 2.0
    cap_s: float = 300.0
    jitter: float = 0.0

    def wait_s(self, failures: int, chance: float) -> float:
        """The wait before the next try after this many failures (1 or more); `chance` is in [0, 1)."""
        # The exponent is bounded so that a huge count cannot overflow a float before the cap applies.
        wait = min(self.cap_s, self.base_s * self.factor ** min(failures - 1, 64))
        return wait * (1.0 + self.jitter * chance)


@dataclass(frozen=True, slots=True)
class Retry:
    """A step's policy: how many attempts may fail by the handler's own doing, and how long to wait between them."""

    max_attempts: int = 3
    base_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 60.0
    jitter: float = 0.25

    @property
    def backoff(self) -> Backoff:
        """The waits of this policy."""
        return Backoff(self.base_s, self.factor, self.cap_s, self.jitter)


# The source documents' sequences.
DATABASE_OPERATION = Backoff(1.0, 2.0, 30.0)  # 1, 2, 4 s: a short operation
DATABASE_ATTEMPT = Backoff(15.0, 2.0, 300.0)  # 15, 30, 60 … 300 s: a step attempt that lost its database
PROVIDER_POLL = Backoff(30.0, 2.0, 120.0)  # 30, 60, 120, 120 … s
