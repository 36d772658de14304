"""Ed25519 signatures over the hash of a policy. The hash is of the canonical form, so comments may change.

Needs `cryptography`, which the extra `service` installs. Keys and signatures are texts in base64.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from contextlib import suppress

from windlass.core.errors import BadPolicy, BadSetting, BadSignature

_KEY_BYTES = 32
# A signature of a policy is never a signature of anything else.
_CONTEXT = b"windlass.policy\n"


def sign_policy(policy: str, private_key: str) -> str:
    """Return the signature of a policy's hash. Raises BadSetting for a key that cannot be read."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(_read("the private key", private_key, _KEY_BYTES))
    return base64.b64encode(key.sign(_CONTEXT + policy.encode())).decode()


def verify_policy(policy: str, signature: str, public_key: str) -> None:
    """Raise BadSignature unless the signature of the policy's hash was made with the key's private half."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = _read("the public key", public_key, _KEY_BYTES)
    try:
        found = base64.b64decode(signature, validate=True)
        Ed25519PublicKey.from_public_bytes(key).verify(found, _CONTEXT + policy.encode())
    except (InvalidSignature, ValueError):
        raise BadSignature(
            "the policy's signature is not valid",
            remedy="Sign the hash that `windlass policy validate` prints with the private key",
        ) from None


def public_key_of(private_key: str) -> str:
    """Return the public half of a private key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(_read("the private key", private_key, _KEY_BYTES))
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def signature_check(public_keys: Sequence[str]) -> Callable[[str, str | None], None] | None:
    """Return a check of a policy's hash and signature against any of these keys; None if there is no key.

    The check raises BadPolicy, because the fault is in what was published and not in the publisher's own key.
    """
    if not public_keys:
        return None
    for key in public_keys:
        _read("a key of policy_keys", key, _KEY_BYTES)

    def check(policy: str, signature: str | None) -> None:
        for key in public_keys:
            with suppress(BadSignature):
                return verify_policy(policy, signature or "", key)
        told = "has no signature" if not signature else "has a signature of no key of policy_keys"
        raise BadPolicy(f"the policy {told}", remedy="Sign its hash, which `windlass policy validate` prints")

    return check


def _read(what: str, text: str, length: int) -> bytes:
    """Return the bytes of a key. The error never repeats the text, which may be secret."""
    try:
        found = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != length:
        raise BadSetting(f"{what} is not {length} bytes in base64")
    return found
