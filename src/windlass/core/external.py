"""What a provider says of the work it was given, whichever way it says so, and what that means for the step.

Only SUCCEEDED, FAILED and CANCELLED end anything. UNKNOWN (it does not answer, or does not know the work) ends nothing:
the wait has a deadline of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

import msgspec

from windlass.core.outcome import Cost, Failure, Fault, Success

# The source documents' 30, 60, 120 s, and then 120 s for ever.
POLL_S = (30.0, 60.0, 120.0)
# How long a step waits for a provider if nobody said.
WAIT_S = 3600.0
_KEY_PREFIX = "wl"
# What a provider calls its work, or its event, is kept in an index.
ID_MAX = 500
_NUMBER_MAX = 2**31


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
        is_in_range = 0 <= found.no < _NUMBER_MAX and 0 < found.round < _NUMBER_MAX
        return found if is_in_range and str(found) == text else None


def is_id(text: str) -> bool:
    """Whether this can be kept as a provider's name for its work or its event."""
    return 0 < len(text) <= ID_MAX and "\x00" not in text and _is_text(text)


def sound(said: Said) -> Said:
    """The statement as it can be stored. One piece of nonsense from a provider must not hold up what others said.

    An output that is not JSON ends the work as a failure; a preview or a cost that makes no sense is dropped.
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
    bad = Fault("bad_output", "what the provider gave as its output is not JSON")
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
    # What came out of JSON may hold half a character.
    return _text(text) == text


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


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
