"""Webhooks to clients: secrets, signatures (Standard Webhooks), and the decision after each delivery attempt."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from windlass.core.errors import BadInput
from windlass.core.states import JobState

SECRET_PREFIX: Final = "whsec_"
SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64
TOLERANCE_S: Final = 300
# The waits after the first, second … failure, three days in total. After one more failure the webhook is dead.
RETRY_AFTER_S: Final = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000)
JITTER: Final = 0.1
# Statuses by which a receiver may ask for a longer wait than the schedule's.
_ASKS_TO_WAIT = frozenset({429, 503})
_GONE = 410


class DeliveryState(StrEnum):
    """The states of a webhook about a job's end."""

    WAITING = "WAITING"
    DUE = "DUE"
    DELIVERED = "DELIVERED"
    DEAD = "DEAD"


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver accepted the webhook."""


@dataclass(frozen=True, slots=True)
class Again:
    """The delivery failed; try again in this many seconds. `code` is the reason."""

    after_s: float
    code: str


@dataclass(frozen=True, slots=True)
class Dead:
    """The delivery failed for good; only an explicit redelivery tries again. `code` is the reason."""

    code: str


def parse_secret(text: str) -> bytes:
    """Return the bytes of a secret in its usual notation. BadInput never repeats the given text."""
    try:
        if not text.startswith(SECRET_PREFIX):
            raise ValueError
        # Other tools leave out the padding, and accept secrets without it.
        encoded = text.removeprefix(SECRET_PREFIX).rstrip("=")
        secret = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
            raise ValueError
    except (ValueError, binascii.Error):
        raise BadInput(
            f"a webhook's secret is {SECRET_PREFIX!r} and {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in base64",
            remedy=f"Make one with: echo {SECRET_PREFIX}$(openssl rand -base64 32)",
        ) from None
    return secret


def delivery_id(job_id: UUID, state: JobState) -> str:
    """Return the `webhook-id`. It is the same at every attempt, so that a receiver can detect a repeat.

    It contains no full stop, because a full stop separates the signed parts.
    """
    return f"{job_id}_{state}"


def sign(secret: bytes, id: str, timestamp: int, body: bytes) -> str:
    """Return one `webhook-signature`."""
    digest = hmac.new(secret, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def verify(
    secrets: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: int, tolerance_s: int = TOLERANCE_S
) -> bool:
    """Return whether one of the secrets signed this body within the tolerance around `now`."""
    found = {name.lower(): value for name, value in headers.items()}
    id, stamp = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    if not id or not (stamp.isascii() and stamp.isdigit()) or len(stamp) > 12:
        return False
    if abs(now - int(stamp)) > tolerance_s:
        return False
    given = [one.encode() for one in found.get("webhook-signature", "").split(" ")]
    wanted = [sign(secret, id, int(stamp), body).encode() for secret in secrets]
    # Compares every pair, so that the duration does not reveal which signature fits.
    return sum(hmac.compare_digest(one, other) for one in given for other in wanted) > 0


def after_try(
    failures: int, status: int | None, fault: str | None, spread: float, retry_after_s: float | None = None
) -> Delivered | Again | Dead:
    """Decide after a delivery attempt. `status` is the HTTP status, or None with a `fault` if there was no answer.

    `failures` counts the earlier failures; `spread` is in [0, 1). Any status but 2xx is a failure, also a redirect: its
    target was not checked. 410 means that the receiver no longer wants the webhook.
    """
    if status is not None and 200 <= status < 300:
        return Delivered()
    code = fault or f"http_{status}"
    if status == _GONE or failures >= len(RETRY_AFTER_S):
        return Dead(code)
    after_s = RETRY_AFTER_S[failures] * (1.0 - JITTER + 2.0 * JITTER * spread)
    if status in _ASKS_TO_WAIT and retry_after_s is not None:
        after_s = max(after_s, min(retry_after_s, float(RETRY_AFTER_S[-1])))
    return Again(after_s, code)
