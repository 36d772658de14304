"""The installation's secret: what keys, tickets and callers are digested with, and webhook secrets are sealed with.

Every purpose has a subkey of its own (HKDF, RFC 5869), so that a digest made for one says nothing for another. Of
several secrets the first makes and all are accepted: put a new one in front, and drop the old one when nothing made
with it is left.
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
    """One or more secrets. Neither they nor what is derived from them is ever shown."""

    def __init__(self, roots: Sequence[bytes]) -> None:
        self._roots = tuple(hmac.digest(_SALT, root, "sha256") for root in roots)
        self._subkeys: dict[str, tuple[bytes, ...]] = {}

    def __repr__(self) -> str:
        return f"Secret({len(self._roots)})"

    @classmethod
    def of(cls, texts: Sequence[str]) -> Secret:
        """From the setting's texts."""
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
        """The same under every accepted secret, the first one first."""
        return [hmac.digest(key, data, "sha256") for key in self._keys(purpose)]

    def seal(self, plain: bytes) -> bytes:
        """Encrypt, so that only this installation can read it: number of the key, nonce, AES-256-GCM."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        number, nonce = self._numbers[0], os.urandom(_NONCE_BYTES)
        return number + nonce + AESGCM(self._keys("seal")[0]).encrypt(nonce, plain, number)

    def open(self, sealed: bytes) -> bytes:
        """What was sealed, by any of the secrets."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        number, rest = sealed[:_NUMBER_BYTES], sealed[_NUMBER_BYTES:]
        if number not in self._numbers:
            raise BadSetting(
                "something was sealed with a secret that is not among those of this installation",
                remedy="Add the former secret behind the present one in WINDLASS_SECRET, separated by a comma",
            )
        key = self._keys("seal")[self._numbers.index(number)]
        try:
            return AESGCM(key).decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], number)
        except (InvalidTag, ValueError):
            raise Broken("what was sealed has been changed since, and cannot be opened") from None

    @cached_property
    def _numbers(self) -> tuple[bytes, ...]:
        # Says which secret sealed, whatever its place in the setting is by now; tells nothing of the secret.
        return tuple(sha256(key).digest()[:_NUMBER_BYTES] for key in self._keys("seal-number"))

    def _keys(self, purpose: str) -> tuple[bytes, ...]:
        found = self._subkeys.get(purpose)
        if found is None:
            # One block of HKDF's expansion is as long as a key.
            found = tuple(hmac.digest(root, purpose.encode() + b"\x01", "sha256") for root in self._roots)
            self._subkeys[purpose] = found
        return found
