"""What tells one kind of failure from another: code, recipe, step, and the message without what differs each time.

Numbers, ids and addresses are what differ. What is left of the message must be equal for two failures to be one kind.
"""

from __future__ import annotations

import hashlib
import re

MESSAGE_CHARS_MAX = 1_000
# The beginning of a message says what kind it is.
KIND_CHARS_MAX = 400
FINGERPRINT_CHARS = 16

# In this order: an address may hold an id, an id holds numbers. None of them backtracks, and each begins at a word
# only: thousands of messages are looked at in one go.
_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"<>)\]]++", re.IGNORECASE), "<url>"),
    (re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++"), "<mail>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]++\b", re.IGNORECASE), "<id>"),
    # IPv6, with or without a port in brackets.
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])", re.IGNORECASE), "<address>"),
    # A word with a digit that is long, or is hexadecimal: an id, a digest, a host with a number, a key.
    (re.compile(r"\b(?=[A-Za-z_-]{0,40}\d)[\w-]{16,}+"), "<id>"),
    (re.compile(r"\b(?=[a-f]{0,15}\d)[0-9a-f]{8,}+\b", re.IGNORECASE), "<id>"),
    (re.compile(r"[+-]?\d++(?:[.,:]\d++)*+"), "<n>"),
    (re.compile(r"\s++"), " "),
)


def kind_of(message: str) -> str:
    """The message as all failures of its kind have it."""
    text = message[:KIND_CHARS_MAX]
    for pattern, mark in _MARKS:
        text = pattern.sub(mark, text)
    return text.strip()


def fingerprint(code: str, recipe: str, step: str | None, message: str) -> str:
    """What names a kind of failure; short, and the same wherever and whenever it is made."""
    parts = (code, recipe, step or "", kind_of(message))
    told = b"".join(b"%d:%b," % (len(part), part) for part in (text.encode("utf-8", "replace") for text in parts))
    return hashlib.sha256(told).hexdigest()[:FINGERPRINT_CHARS]
