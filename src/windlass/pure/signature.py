"""Signatures of providers' webhooks: four profiles, all HMAC-SHA256 over the raw body.

    standard  webhook-id, webhook-timestamp, webhook-signature: v1,<base64> v1,<base64>    (Standard Webhooks)
    stripe    Stripe-Signature: t=<seconds>,v1=<hex>,v1=<hex>
    github    X-Hub-Signature-256: sha256=<hex>
    plain     a header of your choice: <hex>, or sha256=<hex>

An event has an id, by which a replay is refused. Only a signed value can be the id. Otherwise a sender that holds one
signed body could send it under any number of other ids, or under the id of a future event. So the id is `webhook-id`
for the standard profile, and the digest of the body for the others.

Every refusal is the same: naming the wrong part would only help an attacker.
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
    """The ways of signing a webhook."""

    STANDARD = "standard"
    STRIPE = "stripe"
    GITHUB = "github"
    PLAIN = "plain"


def secret_of(profile: SignatureProfile, text: str) -> bytes:
    """Return the bytes of a secret in the notation of this profile. BadInput never repeats the given text."""
    if profile is SignatureProfile.STANDARD:
        return webhook.parse_secret(text)
    # The other profiles sign with the text itself; for Stripe that includes `whsec_`.
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
    """Return the event's id if a secret signed this body at about `now_s` (`tolerance_s`); raise BadSignature if not.

    `header` applies to the plain profile. A profile that signs no time detects an old body only by its id.
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
    """Return the headers that a provider with this profile sends with a body."""
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
    """Return the id of an event whose profile signs no id."""
    return hashlib.sha256(body).hexdigest()


def bad_signature() -> BadSignature:
    """Return the same error for a missing header, a wrong signature and an old signature."""
    return BadSignature(
        "invalid signature: it is wrong, missing or too old",
        remedy="Check the provider's secret, its webhook profile and both clocks",
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
    # Compares every pair, so that the duration does not reveal which signature fits.
    return sum(hmac.compare_digest(one, other) for one in offered for other in wanted) > 0


def _hex(secret: bytes, signed: bytes) -> str:
    return hmac.new(secret, signed, hashlib.sha256).hexdigest()
