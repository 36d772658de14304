"""The text of a callback token: `wlc_<job, step, attempt and end, in base64>.<its MAC>`.

Whoever does a step elsewhere is handed one, and reports back with it. It speaks for one attempt of one step of one job:
another attempt has another token, so a report that comes too late is told from one that counts.

The one who makes it and the one who takes it give the MAC (`mac`, `macs`); this module knows no secret.
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
# Job, step, attempt, end in seconds since 1970.
_FIELDS = struct.Struct(">16sIIQ")
_FORM = re.compile(r"wlc_([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Token:
    """What a token speaks for, and until when."""

    job_id: UUID
    no: int
    attempt: int
    expires_s: int


def make_token(token: Token, mac: Callable[[bytes], bytes]) -> str:
    """Its text. `mac` gives 32 bytes."""
    body = _FIELDS.pack(token.job_id.bytes, token.no, token.attempt, token.expires_s)
    return f"{PREFIX}{_text(body)}.{_text(mac(body))}"


def parse_token(text: str, macs: Callable[[bytes], Sequence[bytes]], *, now_s: float) -> Token:
    """What the text speaks for, if one of the MACs is its own and its time is not over; else BadSignature.

    `macs` gives the MAC under every secret that is accepted.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise bad_token()
    body, given = _bytes(found[1]), _bytes(found[2])
    # Every one is compared, so that the time it takes says nothing of which one fits.
    is_good = sum(hmac.compare_digest(given, wanted) for wanted in macs(body)) > 0
    job_id, no, attempt, expires_s = _FIELDS.unpack(body)
    if not is_good or now_s >= expires_s:
        raise bad_token()
    return Token(UUID(bytes=job_id), no, attempt, expires_s)


def bad_token() -> BadSignature:
    """One text for all: what is none, was changed, is another installation's, is over."""
    return BadSignature("the token is not good", remedy="Use ctx.token of the attempt that handed the work over")


def _text(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    found = base64.urlsafe_b64decode(text + "=")
    # The last digit has bits to spare: only one spelling is the token.
    if _text(found) != text:
        raise bad_token()
    return found
