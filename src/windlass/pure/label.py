"""The label names that can be declared indexed."""

from __future__ import annotations

import re

# The name of an index has 63 bytes, of which its prefix takes 15.
INDEXED_LENGTH_MAX = 48
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def can_be_indexed(name: str) -> bool:
    """Return whether a label of this name can have an index."""
    return len(name) <= INDEXED_LENGTH_MAX and _NAME.fullmatch(name) is not None


def check_indexed(name: str) -> str:
    """Return the name if a label of this name can have an index; raise ValueError otherwise."""
    if not can_be_indexed(name):
        raise ValueError(
            f"{name[:80]!r} cannot be an indexed label: it has letters, digits, _, dots and dashes, "
            f"{INDEXED_LENGTH_MAX} at most"
        )
    return name
