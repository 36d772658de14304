"""The outcomes that an attempt may report: a closed union of values. `settle` is the only reader.

Outputs travel as JSON text: no decision reads them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from uuid import UUID

# The faults of a step that was given a time and used it up: an attempt's `timeout`, or the `wait` for work outside.
ATTEMPT_TIMEOUT = "attempt_timeout"
WAIT_TIMEOUT = "wait_timeout"
TIMEOUTS = frozenset({ATTEMPT_TIMEOUT, WAIT_TIMEOUT})
# The faults of a step that the policy does not allow: its own request, or the job that it started.
SAFETY_DENIED = "safety_denied"
VELOCITY_EXCEEDED = "velocity_exceeded"
DESTINATION_DENIED = "destination_denied"
DENIALS = frozenset({SAFETY_DENIED, VELOCITY_EXCEEDED, DESTINATION_DENIED})

# The limit for one attempt, in any currency.
COST_MAX = 10**12
COST_PLACES_MAX = 18
_COUNT_MAX = 2**53


@dataclass(frozen=True, slots=True)
class Fault:
    """The cause of a failure: a stable code, a message for people, and the kind of exception.

    A job's fault also names the step that failed first.
    """

    code: str
    message: str
    kind: str = ""
    detail: str = ""
    step: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the fault as it is stored and shown, without empty parts."""
        return {k: v for k in ("code", "message", "kind", "detail", "step") if (v := getattr(self, k))}


@dataclass(frozen=True, slots=True)
class Success:
    """The step is done; `output` is JSON text."""

    output: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The attempt failed. A retryable failure is tried again within the step's policy; a final failure is not.

    A failure that is not counted leaves the policy's attempts as they were: the provider was busy, not wrong.
    """

    fault: Fault
    is_retryable: bool = True
    after_s: float | None = None
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class Snooze:
    """The handler asks to run again after `after_s`. A snooze does not count as a failure."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Parked:
    """Another system continues the work, and the worker is free. The step fails if no report arrives within `within_s`.

    `external_id` is the provider's id for the work. It is stored in the same commit.
    """

    waiting_for: str
    within_s: float | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """The handler asks to cancel the whole job."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """The worker hands the step back unfinished because it drains. The attempt does not count."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker died while it held the attempt.

    `company` counts the other attempts that had begun in the same process: 0 means that this attempt ran alone. It is
    None if only the end of the lease is known; then the handler may or may not have begun. The other fields are
    evidence: how the process ended, its peak memory and its last log lines.
    """

    company: int | None = None
    how: str = ""
    peak_bytes: int = 0
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an attempt: the amount as decimal text, and the usage that was paid for."""

    amount: str = "0"
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    provider: str = ""

    @property
    def is_sound(self) -> bool:
        """Return whether the cost can be stored and added up."""
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


# Both classes below are created for every step that runs. A named tuple is as immutable as a frozen dataclass, and is
# created in a quarter of the time.
class Seen(NamedTuple):
    """The job and the step as their claim read them. If nothing changed since, settle need not read them again."""

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
    """An outcome, its attempt, and its source (`worker`, `rescuer`, `webhook`, …).

    A report for an attempt that is no longer the step's current attempt changes nothing (law 4). A reporter that knows
    the step's plan and node fills them in, which saves a lookup.

    `worker` is the worker that ran the attempt. The worker sets it, and so does the rescuer when it finds the attempt
    lost. It is needed because a failover may lose the last commits; then the same attempt number is assigned twice.
    Reports from outside (webhook, callback, child) are about a waiting step without a worker: theirs is None.
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
