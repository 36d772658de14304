"""What an attempt says of itself. A closed union of values; `settle` is the only reader.

Outputs travel as JSON text: the law never looks inside them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from uuid import UUID

# Of one attempt, in whatever money is counted.
COST_MAX = 10**12
COST_PLACES_MAX = 18
_COUNT_MAX = 2**53


@dataclass(frozen=True, slots=True)
class Fault:
    """Why something failed: a stable code, a sentence for people, and what kind of exception it was.

    A job's fault also names the step that failed first.
    """

    code: str
    message: str
    kind: str = ""
    detail: str = ""
    step: str = ""

    def as_json(self) -> dict[str, Any]:
        """What is stored and shown; empty parts are left out."""
        return {k: v for k in ("code", "message", "kind", "detail", "step") if (v := getattr(self, k))}


@dataclass(frozen=True, slots=True)
class Success:
    """The step is done; `output` is JSON text."""

    output: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The attempt failed. A retryable failure is tried again within the step's policy; a final one is not.

    One that is not counted (a provider was busy, not wrong) leaves the policy as it was.
    """

    fault: Fault
    is_retryable: bool = True
    after_s: float | None = None
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not now: run me again after this long. It does not count as a failure."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Parked:
    """The work goes on elsewhere; the worker is free. Someone reports the end, or `within_s` passes and it fails.

    `external_id` is what a provider calls the work; it is kept in the same commit.
    """

    waiting_for: str
    within_s: float | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """The handler asks that the whole job be cancelled."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """The worker hands the step back unfinished (it drains); nothing is counted."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker died while the attempt was its own.

    `company` is how many other attempts had begun in that process: 0 means that this one ran alone. It is None when
    only the end of the lease is known; then the handler may or may not have begun. The rest is the evidence: how the
    process ended, its peak memory and its last log lines.
    """

    company: int | None = None
    how: str = ""
    peak_bytes: int = 0
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """What an attempt cost: money as a decimal text, and what it was paid for."""

    amount: str = "0"
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    provider: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether it can be stored and added up."""
        try:
            amount = Decimal(self.amount)
        except InvalidOperation:
            return False
        return (
            amount.is_finite()
            and 0 <= amount <= COST_MAX
            and int(amount.as_tuple().exponent) >= -COST_PLACES_MAX
            and 0 <= self.tokens_in < _COUNT_MAX
            and 0 <= self.tokens_out < _COUNT_MAX
            and 0 <= self.seconds < math.inf
        )


Outcome = Success | Failure | Snooze | Parked | Cancel | Released | Lost


# The two below are made for every step that runs. A named tuple is as frozen as a frozen dataclass, and made in a
# quarter of the time.
class Seen(NamedTuple):
    """The job and the step as their claim saw them. It saves reading them again if nothing has moved since."""

    version: int
    is_preview: bool
    is_paused: bool
    steps_total: int
    steps_open: int
    steps_failed: int
    has_parent: bool
    correlation_id: str | None
    failures: int
    losses: int


class Report(NamedTuple):
    """An outcome, the attempt it speaks for, and who says so (`worker`, `rescuer`, `webhook`, …).

    A report whose attempt is no longer the step's current one changes nothing (law 4). Whoever knows the step's plan
    and node says so, which saves looking them up.

    `worker` is the worker that ran the attempt, for every report about its run: by itself, or by the rescuer that found
    it lost. A failover may lose the last commits, and then the same attempt number is given out twice. Reports from
    outside (webhook, callback, child) speak for a step that waits and has no worker: theirs is None.
    """

    job_id: UUID
    no: int
    attempt: int
    outcome: Outcome
    source: str = "worker"
    idempotency_key: str | None = None
    plan_hash: str | None = None
    node: int = -1
    seen: Seen | None = None
    cost: Cost | None = None
    worker: UUID | None = None
