"""Ed25519 signatures over the hash of a policy. The hash is of the canonical form, so comments may change.

Needs `cryptography`, which the extra `service` installs. Keys and signatures are texts in base64.
"""

from __future__ import annotations

import base64
import binascii

from windlass.core.errors import BadSetting, BadSignature

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


def _read(what: str, text: str, length: int) -> bytes:
    """Return the bytes of a key. The error never repeats the text, which may be secret."""
    try:
        found = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != length:
        raise BadSetting(f"{what} is not {length} bytes in base64")
    return found
