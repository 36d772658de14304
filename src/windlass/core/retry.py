"""Retry policies: a step's policy, its backoff, and the presets from the source documents."""

from __future__ import annotations

from dataclasses import dataclass

# A worker that dies loses its attempts. Lost attempts do not count against a step's own policy; otherwise one deploy
# would fail every job with max_attempts=1. A loss in company proves nothing, and healthy workers are killed too, so the
# first loss is free. The second loss makes the step a suspect: from then on it runs alone, and only losses while it
# runs alone count towards its failure. Three are needed, because a process may also crash or be killed by hand.
SUSPECT_LOSSES = 2
ALONE_LOSSES = 3
LOSSES_MAX = SUSPECT_LOSSES + ALONE_LOSSES
# If the heartbeat process died too (a whole host), the engine only sees that the lease expired. That proves less, so
# more of these losses are needed. A step that takes whole hosts down still fails in the end.
SILENT_LOSSES_MAX = LOSSES_MAX + 2


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow by `factor` from `base_s` up to `cap_s`. At random, up to the share `jitter` is added."""

    base_s: float
    factor: float = 2.0
    cap_s: float = 300.0
    jitter: float = 0.0

    def wait_s(self, failures: int, spread: float) -> float:
        """Return the wait before the next attempt after this many failures (1 or more). `spread` is in [0, 1)."""
        # The exponent is bounded so that a huge count cannot overflow a float before the cap applies.
        wait = min(self.cap_s, self.base_s * self.factor ** min(failures - 1, 64))
        return wait * (1.0 + self.jitter * spread)


@dataclass(frozen=True, slots=True)
class Retry:
    """A step's policy: how many attempts may fail in the handler, and the waits between them."""

    max_attempts: int = 3
    base_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 60.0
    jitter: float = 0.25

    @property
    def backoff(self) -> Backoff:
        """The backoff of this policy."""
        return Backoff(self.base_s, self.factor, self.cap_s, self.jitter)


# The sequences of the source documents.
DATABASE_OPERATION = Backoff(1.0, 2.0, 30.0)  # 1, 2, 4 s: a short operation
DATABASE_ATTEMPT = Backoff(15.0, 2.0, 300.0)  # 15, 30, 60 … 300 s: a step attempt that lost its database
PROVIDER_POLL = Backoff(30.0, 2.0, 120.0)  # 30, 60, 120, 120 … s
