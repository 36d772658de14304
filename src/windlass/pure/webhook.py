"""A webhook's rules: its secret, its signature (Standard Webhooks), and what comes of a try to deliver it."""

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
# The waits after the first, second … failure, three days in all; after one more, nobody is there.
RETRY_AFTER_S: Final = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000)
JITTER: Final = 0.1
# What a receiver may say that makes us wait longer than the schedule does.
_ASKS_TO_WAIT = frozenset({429, 503})
_GONE = 410


class DeliveryState(StrEnum):
    """How far the word of a job's end has come."""

    WAITING = "WAITING"
    DUE = "DUE"
    DELIVERED = "DELIVERED"
    DEAD = "DEAD"


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver took it."""


@dataclass(frozen=True, slots=True)
class Again:
    """Not yet; once more in this many seconds. `code` says what went wrong."""

    after_s: float
    code: str


@dataclass(frozen=True, slots=True)
class Dead:
    """Not taken, and it will not be tried again unless somebody asks for it."""

    code: str


def parse_secret(text: str) -> bytes:
    """The bytes of a secret as people write it; BadInput never repeats what was given."""
    try:
        if not text.startswith(SECRET_PREFIX):
            raise ValueError
        # Others leave the padding away, and take secrets without it.
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
    """The `webhook-id`: the same on every try, so that a receiver can tell a repeat.

    It has no full stop, which is what separates it from the rest of what is signed.
    """
    return f"{job_id}_{state}"


def sign(secret: bytes, id: str, timestamp: int, body: bytes) -> str:
    """One `webhook-signature`."""
    digest = hmac.new(secret, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def verify(
    secrets: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: int, tolerance_s: int = TOLERANCE_S
) -> bool:
    """Whether one of the secrets signed this body, and not too long before or after `now`."""
    found = {name.lower(): value for name, value in headers.items()}
    id, stamp = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    if not id or not (stamp.isascii() and stamp.isdigit()) or len(stamp) > 12:
        return False
    if abs(now - int(stamp)) > tolerance_s:
        return False
    given = [one.encode() for one in found.get("webhook-signature", "").split(" ")]
    wanted = [sign(secret, id, int(stamp), body).encode() for secret in secrets]
    # Every pair is compared, so that the time it takes says nothing of which one fits.
    return sum(hmac.compare_digest(one, other) for one in given for other in wanted) > 0


def after_try(
    failures: int, status: int | None, fault: str | None, chance: float, retry_after_s: float | None = None
) -> Delivered | Again | Dead:
    """What comes of a try: `status` is the HTTP status, or None with a `fault` when there was no answer.

    `failures` counts those before it, `chance` is in [0, 1). Whatever is not 2xx is a failure, redirects with it: where
    they lead was not checked. 410 says that nobody wants it any more.
    """
    if status is not None and 200 <= status < 300:
        return Delivered()
    code = fault or f"http_{status}"
    if status == _GONE or failures >= len(RETRY_AFTER_S):
        return Dead(code)
    after_s = RETRY_AFTER_S[failures] * (1.0 - JITTER + 2.0 * JITTER * chance)
    if status in _ASKS_TO_WAIT and retry_after_s is not None:
        after_s = max(after_s, min(retry_after_s, float(RETRY_AFTER_S[-1])))
    return Again(after_s, code)
