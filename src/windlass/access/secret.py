"""The installation's secret: it digests keys, tickets and caller ids, and seals webhook secrets.

Every purpose has a separate subkey (HKDF, RFC 5869), so a digest made for one purpose is useless for another. Of
several secrets, the first makes digests and seals, and all are accepted. To rotate, put a new secret in front, and drop
the old secret when no digest or seal made with it is left.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256

from windlass.core.errors import BadSetting, Broken

LENGTH_MIN = 32
_SALT = b"windlass"
_NUMBER_BYTES = 4
_NONCE_BYTES = 12


class Secret:
    """One or more secrets. Neither a secret nor a derived subkey is ever shown."""

    def __init__(self, roots: Sequence[bytes]) -> None:
        self._roots = tuple(hmac.digest(_SALT, root, "sha256") for root in roots)
        self._subkeys: dict[str, tuple[bytes, ...]] = {}

    def __repr__(self) -> str:
        return f"Secret({len(self._roots)})"

    @classmethod
    def of(cls, texts: Sequence[str]) -> Secret:
        """Build a Secret from the texts of the setting."""
        if not texts or any(len(text) < LENGTH_MIN for text in texts):
            raise BadSetting(
                f"the installation's secret has fewer than {LENGTH_MIN} characters",
                remedy="Set WINDLASS_SECRET to the output of: openssl rand -hex 32",
            )
        return cls([text.encode() for text in texts])

    def digest(self, purpose: str, data: bytes) -> bytes:
        """HMAC-SHA256 under the first secret's subkey for this purpose."""
        return hmac.digest(self._keys(purpose)[0], data, "sha256")

    def digests(self, purpose: str, data: bytes) -> list[bytes]:
        """Return the HMAC-SHA256 under every accepted secret, the first secret first."""
        return [hmac.digest(key, data, "sha256") for key in self._keys(purpose)]

    def seal(self, plain: bytes) -> bytes:
        """Encrypt for this installation only. The format is: key number, nonce, AES-256-GCM."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        number, nonce = self._numbers[0], os.urandom(_NONCE_BYTES)
        return number + nonce + AESGCM(self._keys("seal")[0]).encrypt(nonce, plain, number)

    def open(self, sealed: bytes) -> bytes:
        """Decrypt text sealed with any of the accepted secrets."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        number, rest = sealed[:_NUMBER_BYTES], sealed[_NUMBER_BYTES:]
        if number not in self._numbers:
            raise BadSetting(
                "a value was sealed with a secret that this installation does not have",
                remedy="Add the former secret after the current secret in WINDLASS_SECRET, separated by a comma",
            )
        key = self._keys("seal")[self._numbers.index(number)]
        try:
            return AESGCM(key).decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], number)
        except (InvalidTag, ValueError):
            raise Broken("a sealed value was changed and cannot be opened") from None

    @cached_property
    def _numbers(self) -> tuple[bytes, ...]:
        # The number identifies the secret that sealed, at any position in the setting. It reveals nothing about the
        # secret.
        return tuple(sha256(key).digest()[:_NUMBER_BYTES] for key in self._keys("seal-number"))

    def _keys(self, purpose: str) -> tuple[bytes, ...]:
        found = self._subkeys.get(purpose)
        if found is None:
            # One block of HKDF's expansion is as long as a key.
            found = tuple(hmac.digest(root, purpose.encode() + b"\x01", "sha256") for root in self._roots)
            self._subkeys[purpose] = found
        return found
