"""The text of a key: `wl_<id>_<secret><checksum>`, all in base 62.

The id is public: it names the key in lists, logs and the audit. The checksum allows the server to refuse a typing
error, a truncated copy or plain junk without a lookup. It also allows scanners to recognise a leaked key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from zlib import crc32

PREFIX = "wl"
ID_BYTES = 9
SECRET_BYTES = 32
_ID_LENGTH = 12
_SECRET_LENGTH = 43
_SUM_LENGTH = 6
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(
    rf"{PREFIX}_(?P<id>[0-9A-Za-z]{{{_ID_LENGTH}}})_[0-9A-Za-z]{{{_SECRET_LENGTH}}}(?P<sum>[0-9A-Za-z]{{{_SUM_LENGTH}}})"
)


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key. Only its id is ever shown."""

    id: str
    text: str = field(repr=False)


def make_key(id_bytes: bytes, secret_bytes: bytes) -> KeyText:
    """Return the key made of 9 and 32 random bytes."""
    if len(id_bytes) != ID_BYTES or len(secret_bytes) != SECRET_BYTES:
        raise ValueError(f"a key is made of {ID_BYTES} and {SECRET_BYTES} bytes")
    # Nine bytes hold slightly more than twelve digits; the excess wraps around.
    key_id = _base62(int.from_bytes(id_bytes) % 62**_ID_LENGTH, _ID_LENGTH)
    body = f"{PREFIX}_{key_id}_{_base62(int.from_bytes(secret_bytes), _SECRET_LENGTH)}"
    return KeyText(key_id, body + _checksum(body))


def parse_key(text: str) -> KeyText | None:
    """Parse a key; return None if its form or checksum is wrong."""
    found = _FORM.fullmatch(text)
    if found is None or _checksum(text[:-_SUM_LENGTH]) != found["sum"]:
        return None
    return KeyText(found["id"], text)


def _checksum(body: str) -> str:
    return _base62(crc32(body.encode()), _SUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
