"""Fingerprints of failures: the code, the recipe, the step, and the message without its variable parts.

The variable parts are numbers, ids and addresses. Two failures are of one kind if the rest of their messages is equal.
"""

from __future__ import annotations

import hashlib
import re

MESSAGE_CHARS_MAX = 1_000
# The start of a message identifies its kind.
KIND_CHARS_MAX = 400
FINGERPRINT_CHARS = 16

# The order matters: an address may contain an id, and an id contains numbers. No pattern backtracks, and each starts
# only at a word, because thousands of messages are processed at once.
_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"<>)\]]++", re.IGNORECASE), "<url>"),
    (re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++"), "<mail>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]++\b", re.IGNORECASE), "<id>"),
    # IPv6, with or without a port in brackets.
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])", re.IGNORECASE), "<address>"),
    # A word with a digit that is long or hexadecimal: an id, a digest, a host with a number, a key.
    (re.compile(r"\b(?=[A-Za-z_-]{0,40}\d)[\w-]{16,}+"), "<id>"),
    (re.compile(r"\b(?=[a-f]{0,15}\d)[0-9a-f]{8,}+\b", re.IGNORECASE), "<id>"),
    (re.compile(r"[+-]?\d++(?:[.,:]\d++)*+"), "<n>"),
    (re.compile(r"\s++"), " "),
)


def kind_of(message: str) -> str:
    """Return the part of the message that all failures of its kind share."""
    text = message[:KIND_CHARS_MAX]
    for pattern, mark in _MARKS:
        text = pattern.sub(mark, text)
    return text.strip()


def fingerprint(code: str, recipe: str, step: str | None, message: str) -> str:
    """Return the short, stable name of a kind of failure."""
    parts = (code, recipe, step or "", kind_of(message))
    told = b"".join(b"%d:%b," % (len(part), part) for part in (text.encode("utf-8", "replace") for text in parts))
    return hashlib.sha256(told).hexdigest()[:FINGERPRINT_CHARS]
