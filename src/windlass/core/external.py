"""A provider's statements about its work, from a webhook, a poll or a callback, and their meaning for the step.

Only SUCCEEDED, FAILED and CANCELLED end the work. UNKNOWN (the provider does not answer, or does not know the work)
ends nothing, because the step's wait has its own deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

import msgspec

from windlass.core.outcome import Cost, Failure, Fault, Success

# The intervals of the source documents: 30, 60, 120 s, then always 120 s.
POLL_S = (30.0, 60.0, 120.0)
# The default time that a step waits for a provider.
WAIT_S = 3600.0
_KEY_PREFIX = "wl"
# The longest id of a provider's work or event: the ids are in an index.
ID_MAX = 500
_NUMBER_MAX = 2**31


class ProviderStatus(StrEnum):
    """The states of external work, in one vocabulary for all providers."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"

    @property
    def is_terminal(self) -> bool:
        """Return whether the provider has finished the work."""
        return self in (ProviderStatus.SUCCEEDED, ProviderStatus.FAILED, ProviderStatus.CANCELLED)


class WorkState(StrEnum):
    """Where the engine stands with one piece of external work."""

    SUBMITTING = "SUBMITTING"  # the provider has not accepted it yet, as far as the engine knows
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    ENDED = "ENDED"


@dataclass(frozen=True, slots=True)
class Said:
    """A provider's statement about one piece of work. `output` and `preview` are JSON texts."""

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
    """The idempotency key of a request to a provider: the job, the step and the round."""

    job_id: UUID
    no: int
    round: int

    def __str__(self) -> str:
        return f"{_KEY_PREFIX}-{self.job_id}-{self.no}-{self.round}"

    @classmethod
    def parse(cls, text: str) -> WorkKey | None:
        """Parse a key; return None if the text is not a key."""
        prefix, dash, rest = text.partition("-")
        parts = rest.rsplit("-", 2)
        if prefix != _KEY_PREFIX or not dash or len(parts) != 3:
            return None
        try:
            found = cls(UUID(parts[0]), int(parts[1]), int(parts[2]))
        except ValueError:
            return None
        is_in_range = 0 <= found.no < _NUMBER_MAX and 0 < found.round < _NUMBER_MAX
        return found if is_in_range and str(found) == text else None


def is_id(text: str) -> bool:
    """Return whether the text can be stored as a provider's id for its work or its event."""
    return 0 < len(text) <= ID_MAX and "\x00" not in text and _is_text(text)


def sound(said: Said) -> Said:
    """Return the statement in a form that can be stored. Invalid data of one provider must not delay other statements.

    An output that is not JSON ends the work as a failure. An invalid preview or cost is dropped.
    """
    fault = said.fault and replace(said.fault, **{key: _text(getattr(said.fault, key)) for key in _FAULT_TEXTS})
    said = replace(
        said,
        fault=fault,
        message=None if said.message is None else _text(said.message),
        preview=said.preview if said.preview is not None and _is_json(said.preview) else None,
        cost=said.cost if said.cost is not None and said.cost.is_sound else None,
    )
    if said.output is None or _is_json(said.output):
        return said
    is_lost = said.status is ProviderStatus.SUCCEEDED
    bad = Fault("bad_output", "the provider's output is not JSON")
    return replace(
        said,
        output=None,
        status=ProviderStatus.FAILED if is_lost else said.status,
        fault=bad if is_lost else said.fault,
        is_retryable=not is_lost and said.is_retryable,
    )


_FAULT_TEXTS = ("code", "message", "kind", "detail", "step")


def _text(text: str) -> str:
    return text.encode(errors="replace").decode()


def _is_text(text: str) -> bool:
    # Decoded JSON may contain a lone surrogate.
    return _text(text) == text


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def outcome_of(said: Said) -> Success | Failure | None:
    """Return the outcome of the attempt, or None if the work has not ended."""
    match said.status:
        case ProviderStatus.SUCCEEDED:
            return Success(said.output if said.output is not None else "null")
        case ProviderStatus.FAILED:
            fault = said.fault or Fault("provider_failed", "the provider reported a failure without a reason")
            return Failure(fault, is_retryable=said.is_retryable)
        case ProviderStatus.CANCELLED:
            fault = said.fault or Fault("provider_cancelled", "the provider reported that the work was cancelled")
            return Failure(fault, is_retryable=False)
    return None


def poll_wait_s(polls: int, spread: float, *, waits_s: Sequence[float] = POLL_S, jitter: float = 0.1) -> float:
    """Return the wait before the next poll; the last interval repeats. `spread` in [0, 1) spreads the polls."""
    wait_s = waits_s[min(polls, len(waits_s) - 1)]
    return wait_s * (1.0 + jitter * (2.0 * spread - 1.0))
