"""The text of a callback token: `wlc_<job, step, attempt and end, in base64>.<its MAC>`.

A system that does a step's work gets a token and reports back with it. A token is valid for one attempt of one step of
one job. Another attempt has another token, so a late report can be distinguished from a current one.

The callers compute the MAC (`mac`, `macs`); this module knows no secret.
"""

from __future__ import annotations

import base64
import hmac
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from windlass.core.errors import BadSignature

PREFIX = "wlc_"
PURPOSE = "callback"
# The job, the step, the attempt, and the end in seconds since 1970.
_FIELDS = struct.Struct(">16sIIQ")
_FORM = re.compile(r"wlc_([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Token:
    """The attempt that a token is valid for, and its end."""

    job_id: UUID
    no: int
    attempt: int
    expires_s: int


def make_token(token: Token, mac: Callable[[bytes], bytes]) -> str:
    """Return the token's text. `mac` returns 32 bytes."""
    body = _FIELDS.pack(token.job_id.bytes, token.no, token.attempt, token.expires_s)
    return f"{PREFIX}{_text(body)}.{_text(mac(body))}"


def parse_token(text: str, macs: Callable[[bytes], Sequence[bytes]], *, now_s: float) -> Token:
    """Return the token if its MAC is valid and it has not expired; raise BadSignature otherwise.

    `macs` returns the MAC under every accepted secret.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise bad_token()
    body, given = _bytes(found[1]), _bytes(found[2])
    # Compares all MACs, so that the duration does not reveal which one fits.
    is_good = sum(hmac.compare_digest(given, wanted) for wanted in macs(body)) > 0
    job_id, no, attempt, expires_s = _FIELDS.unpack(body)
    if not is_good or now_s >= expires_s:
        raise bad_token()
    return Token(UUID(bytes=job_id), no, attempt, expires_s)


def bad_token() -> BadSignature:
    """Return the same error for a malformed, changed, foreign or expired token."""
    return BadSignature("invalid token", remedy="Use ctx.token of the attempt that handed the work over")


def _text(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    found = base64.urlsafe_b64decode(text + "=")
    # The last digit has unused bits; only one spelling is valid.
    if _text(found) != text:
        raise bad_token()
    return found
