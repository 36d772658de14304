"""How providers sign what they tell us: four profiles, all of them HMAC-SHA256 over the body as it came.

    standard  webhook-id, webhook-timestamp, webhook-signature: v1,<base64> v1,<base64>    (Standard Webhooks)
    stripe    Stripe-Signature: t=<seconds>,v1=<hex>,v1=<hex>
    github    X-Hub-Signature-256: sha256=<hex>
    plain     a header of your choice: <hex>, or sha256=<hex>

An event has an id, by which its replay is refused. Only an id that is signed can be one: whoever holds one signed body
could send it under as many other ids as they like, or under one that is still to come. So it is `webhook-id` for the
standard profile, and the digest of the body for the others.

Every refusal is the same: which part was wrong helps only those who guess.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import assert_never

from windlass.core.errors import BadInput, BadSignature
from windlass.pure import webhook

TOLERANCE_S = webhook.TOLERANCE_S
PLAIN_HEADER = "X-Signature"
ID_LENGTH_MAX = 255
PLAIN_SECRET_MIN = 16
_STAMP_LENGTH_MAX = 12
_GITHUB_PREFIX = "sha256="


class SignatureProfile(StrEnum):
    """Whose way of signing it is."""

    STANDARD = "standard"
    STRIPE = "stripe"
    GITHUB = "github"
    PLAIN = "plain"


def secret_of(profile: SignatureProfile, text: str) -> bytes:
    """The bytes of a secret as people write it for this profile; BadInput never repeats what was given."""
    if profile is SignatureProfile.STANDARD:
        return webhook.parse_secret(text)
    # The others sign with the text itself, Stripe's `whsec_` with it.
    if len(text) < PLAIN_SECRET_MIN:
        raise BadInput(
            f"a webhook's secret has at least {PLAIN_SECRET_MIN} characters",
            remedy="Make one with: openssl rand -hex 32",
        )
    return text.encode()


def verify(
    profile: SignatureProfile,
    secrets: Sequence[bytes],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now_s: float,
    tolerance_s: float = TOLERANCE_S,
    header: str = PLAIN_HEADER,
) -> str:
    """The event's id, if one of the secrets signed this body, not too long before or after `now_s`; else BadSignature.

    `header` is the plain profile's. Where a profile signs no time, an old body is refused by its id alone.
    """
    found = {name.lower(): value for name, value in headers.items()}
    match profile:
        case SignatureProfile.STANDARD:
            id = found.get("webhook-id", "")
            is_good = webhook.verify(secrets, found, body, int(now_s), int(tolerance_s))
            is_good = is_good and len(id) <= ID_LENGTH_MAX and id.isascii() and id.isprintable()
        case SignatureProfile.STRIPE:
            id = digest_id(body)
            is_good = _is_stripe(secrets, found.get("stripe-signature", ""), body, now_s, tolerance_s)
        case SignatureProfile.GITHUB:
            id = digest_id(body)
            given = found.get("x-hub-signature-256", "")
            is_good = given.startswith(_GITHUB_PREFIX) and _is_signed(secrets, [given[len(_GITHUB_PREFIX) :]], body)
        case SignatureProfile.PLAIN:
            id = digest_id(body)
            given = found.get(header.lower(), "").removeprefix(_GITHUB_PREFIX)
            is_good = _is_signed(secrets, [given], body)
        case _:
            assert_never(profile)
    if not is_good:
        raise bad_signature()
    return id


def sign(
    profile: SignatureProfile, secret: bytes, body: bytes, *, now_s: float, id: str = "", header: str = PLAIN_HEADER
) -> dict[str, str]:
    """The headers that a provider of this profile sends with a body."""
    match profile:
        case SignatureProfile.STANDARD:
            stamp = int(now_s)
            return {
                "webhook-id": id,
                "webhook-timestamp": str(stamp),
                "webhook-signature": webhook.sign(secret, id, stamp, body),
            }
        case SignatureProfile.STRIPE:
            return {"Stripe-Signature": f"t={int(now_s)},v1={_hex(secret, _stamped(str(int(now_s)), body))}"}
        case SignatureProfile.GITHUB:
            named = {"X-GitHub-Delivery": id} if id else {}
            return {"X-Hub-Signature-256": _GITHUB_PREFIX + _hex(secret, body), **named}
        case SignatureProfile.PLAIN:
            return {header: _hex(secret, body)}
        case _:
            assert_never(profile)


def digest_id(body: bytes) -> str:
    """The id of an event whose profile signs none."""
    return hashlib.sha256(body).hexdigest()


def bad_signature() -> BadSignature:
    """One text for all: a missing header, a wrong signature, one that is too old."""
    return BadSignature(
        "the webhook is not signed as it must be, or too old",
        remedy="Look at the provider's secret, its webhook profile and both clocks",
    )


def _is_stripe(secrets: Sequence[bytes], given: str, body: bytes, now_s: float, tolerance_s: float) -> bool:
    pairs = [pair.partition("=") for pair in given.split(",")]
    stamps = [value for name, _, value in pairs if name.strip() == "t"]
    signatures = [value for name, _, value in pairs if name.strip() == "v1"]
    if len(stamps) != 1:
        return False
    stamp = stamps[0]
    if not (stamp.isascii() and stamp.isdigit()) or len(stamp) > _STAMP_LENGTH_MAX:
        return False
    return abs(now_s - int(stamp)) <= tolerance_s and _is_signed(secrets, signatures, _stamped(stamp, body))


def _stamped(stamp: str, body: bytes) -> bytes:
    return stamp.encode() + b"." + body


def _is_signed(secrets: Sequence[bytes], given: Sequence[str], signed: bytes) -> bool:
    wanted = [_hex(secret, signed).encode() for secret in secrets]
    offered = [one.strip().lower().encode() for one in given]
    # Every pair is compared, so that the time it takes says nothing of which one fits.
    return sum(hmac.compare_digest(one, other) for one in offered for other in wanted) > 0


def _hex(secret: bytes, signed: bytes) -> str:
    return hmac.new(secret, signed, hashlib.sha256).hexdigest()
