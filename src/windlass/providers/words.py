"""The vocabulary of providers: status words, and error codes.

Each provider has its own spelling. Words outside the tables carry no meaning: an unknown status is UNKNOWN, and an
unknown code is a failure that may pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Cost, Fault
from windlass.providers.errors import shown

STATUSES: Mapping[str, ProviderStatus] = {
    **dict.fromkeys(
        ("queued", "pending", "waiting", "starting", "created", "submitted", "accepted", "scheduled", "in_queue"),
        ProviderStatus.QUEUED,
    ),
    **dict.fromkeys(
        ("running", "processing", "in_progress", "started", "active", "working"), ProviderStatus.RUNNING
    ),
    **dict.fromkeys(
        ("succeeded", "success", "successful", "completed", "complete", "done", "finished", "ok"),
        ProviderStatus.SUCCEEDED,
    ),
    **dict.fromkeys(("failed", "failure", "error", "errored"), ProviderStatus.FAILED),
    **dict.fromkeys(("cancelled", "canceled", "aborted"), ProviderStatus.CANCELLED),
}  # fmt: skip

RATE_LIMITED = "rate_limited"
CONTENT_REFUSED = "content_refused"
INSUFFICIENT_FUNDS = "insufficient_funds"
_CODES: Mapping[str, str] = {
    **dict.fromkeys(
        ("rate_limited", "rate_limit", "rate_limit_exceeded", "rate_limit_error", "too_many_requests", "throttled"),
        RATE_LIMITED,
    ),
    **dict.fromkeys(
        ("content_policy_violation", "content_policy", "content_filter", "moderation_blocked", "safety_violation"),
        CONTENT_REFUSED,
    ),
    **dict.fromkeys(("insufficient_quota", "insufficient_funds", "insufficient_credit"), INSUFFICIENT_FUNDS),
}
_FINAL = (CONTENT_REFUSED, INSUFFICIENT_FUNDS)


def status_of(word: object, table: Mapping[str, ProviderStatus] = STATUSES) -> ProviderStatus:
    """Return the status for a provider's word; UNKNOWN for a word that is not in the table."""
    return table.get(word.strip().lower(), ProviderStatus.UNKNOWN) if isinstance(word, str) else ProviderStatus.UNKNOWN


def meaning_of(codes: Iterable[object]) -> str | None:
    """Return our code for the first known code of a provider: rate_limited, content_refused, insufficient_funds."""
    for code in codes:
        if isinstance(code, str) and (found := _CODES.get(code.strip().lower().replace("-", "_").replace(" ", "_"))):
            return found
    return None


def codes_in(value: Any) -> list[object]:
    """Collect the codes in a provider's error, from the fields that providers use for them."""
    found: list[object] = []
    for _ in range(4):
        if isinstance(value, list):
            value = value[0] if value else None
        if not isinstance(value, dict):
            break
        found += [value[key] for key in ("code", "type", "error_type", "error_code", "status") if value.get(key)]
        value = next((value[key] for key in ("error", "detail", "errors", "data") if value.get(key)), None)
        if isinstance(value, str):
            found.append(value)
    return found


def succeeded(output: Any, cost: Cost | None = None) -> Said:
    """Build a success with its output."""
    return Said(ProviderStatus.SUCCEEDED, output=json_text(output), cost=cost)


def failed(
    message: str,
    *,
    codes: Iterable[object] = (),
    code: str = "provider_failed",
    is_retryable: bool = True,
    cost: Cost | None = None,
) -> Said:
    """Build a failure. The provider's code, if known, decides whether another attempt may help."""
    meaning = meaning_of(codes)
    message = shown(message) or "the provider reports a failure without a reason"
    if meaning is not None:
        code, is_retryable = meaning, meaning not in _FINAL
    return Said(ProviderStatus.FAILED, fault=Fault(code, message), is_retryable=is_retryable, cost=cost)


def cancelled(message: str = "") -> Said:
    """Build a cancellation by the provider."""
    return Said(ProviderStatus.CANCELLED, fault=Fault("provider_cancelled", shown(message)) if message else None)


def unknown(message: str = "") -> Said:
    """Build an unknown status, which ends nothing."""
    return Said(ProviderStatus.UNKNOWN, message=shown(message) or None)


def json_text(value: Any) -> str:
    """Encode a value as JSON text."""
    return msgspec.json.encode(value).decode()


def percent_of(value: object) -> float | None:
    """Convert to a percentage from 0 to 100; None for a value that is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return min(max(float(value), 0.0), 100.0) if value == value else None
