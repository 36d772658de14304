"""What a provider says of the work it was given, whichever way it says so, and what that means for the step.

Only SUCCEEDED, FAILED and CANCELLED end anything. UNKNOWN (it does not answer, or does not know the work) ends nothing:
the wait has a deadline of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from windlass.core.outcome import Cost, Failure, Fault, Success

# The source documents' 30, 60, 120 s, and then 120 s for ever.
POLL_S = (30.0, 60.0, 120.0)
_KEY_PREFIX = "wl"


class ProviderStatus(StrEnum):
    """Where external work stands, in one vocabulary for all providers."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"

    @property
    def is_terminal(self) -> bool:
        """Whether the provider is done with it."""
        return self in (ProviderStatus.SUCCEEDED, ProviderStatus.FAILED, ProviderStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class Said:
    """One statement of a provider about one piece of work. `output` and `preview` are JSON texts."""

    status: ProviderStatus
    output: str | None = None
    fault: Fault | None = None
    is_retryable: bool = True
    cost: Cost | None = None
    progress_pct: float | None = None
    message: str | None = None
    preview: str | None = None


@dataclass(frozen=True, slots=True)
class WorkKey:
    """What makes a request to a provider the same request: the job, the step and the round."""

    job_id: UUID
    no: int
    round: int

    def __str__(self) -> str:
        return f"{_KEY_PREFIX}-{self.job_id}-{self.no}-{self.round}"

    @classmethod
    def parse(cls, text: str) -> WorkKey | None:
        """The key that this text is, None if it is none."""
        prefix, dash, rest = text.partition("-")
        parts = rest.rsplit("-", 2)
        if prefix != _KEY_PREFIX or not dash or len(parts) != 3:
            return None
        try:
            found = cls(UUID(parts[0]), int(parts[1]), int(parts[2]))
        except ValueError:
            return None
        return found if str(found) == text else None


def outcome_of(said: Said) -> Success | Failure | None:
    """What the statement makes of the attempt; None while there is nothing to settle."""
    match said.status:
        case ProviderStatus.SUCCEEDED:
            return Success(said.output if said.output is not None else "null")
        case ProviderStatus.FAILED:
            fault = said.fault or Fault("provider_failed", "the provider says that it failed, and not why")
            return Failure(fault, is_retryable=said.is_retryable)
        case ProviderStatus.CANCELLED:
            fault = said.fault or Fault("provider_cancelled", "the provider says that it was cancelled there")
            return Failure(fault, is_retryable=False)
    return None


def poll_wait_s(polls: int, chance: float, *, waits_s: Sequence[float] = POLL_S, jitter: float = 0.1) -> float:
    """How long after this many polls to ask again; the last wait is repeated. `chance` in [0, 1) spreads them."""
    wait_s = waits_s[min(polls, len(waits_s) - 1)]
    return wait_s * (1.0 + jitter * (2.0 * chance - 1.0))
