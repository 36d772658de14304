"""Displays a state as a glyph, a colour and always its word, so that no meaning depends on colour alone."""

from __future__ import annotations

import sys
from datetime import datetime

# Glyphs are one cell wide in every font; the second set is for terminals without UTF-8.
_GLYPHS: dict[str, tuple[str, str]] = {
    "BLOCKED": ("·", "."),
    "READY": ("○", "o"),
    "HELD": ("‖", "="),
    "QUEUED": ("○", "o"),
    "RUNNING": ("◐", ">"),
    "PARKED": ("◇", "~"),
    "COMPLETED": ("✓", "+"),
    "SKIPPED": ("–", "-"),
    "FAILED": ("✗", "x"),
    "CANCELLED": ("⊘", "/"),
    "DENIED": ("⊗", "#"),
    "QUARANTINED": ("⚑", "!"),
    "ABANDONED": ("⊝", "_"),
    "PENDING": ("·", "."),
    "APPROVAL_REQUIRED": ("‖", "="),
    "DISPATCHING": ("◐", ">"),
    "PROCESSING": ("◐", ">"),
    "PREVIEW": ("◐", ">"),
    "TIMEOUT": ("✗", "x"),
    "EXPIRED": ("✗", "x"),
    "OUTPUT_QUARANTINED": ("⚑", "!"),
}
_COLOURS: dict[str, str] = {
    "COMPLETED": "green",
    "RUNNING": "cyan",
    "PROCESSING": "cyan",
    "DISPATCHING": "cyan",
    "PREVIEW": "cyan",
    "READY": "yellow",
    "QUEUED": "yellow",
    "HELD": "magenta",
    "PARKED": "magenta",
    "APPROVAL_REQUIRED": "magenta",
    "FAILED": "red",
    "TIMEOUT": "red",
    "EXPIRED": "red",
    "DENIED": "red",
    "QUARANTINED": "red",
    "OUTPUT_QUARANTINED": "red",
    "CANCELLED": "bright_black",
    "ABANDONED": "bright_black",
    "SKIPPED": "bright_black",
    "BLOCKED": "bright_black",
    "PENDING": "bright_black",
}


def has_unicode() -> bool:
    """Return whether the output can show characters beyond ASCII."""
    # This reads the original stream, because a live picture replaces `sys.stdout` by an object without an encoding.
    return (getattr(sys.__stdout__, "encoding", None) or "ascii").lower().replace("-", "").startswith("utf")


def glyph(state: str) -> str:
    """Return the glyph of a state."""
    fancy, plain = _GLYPHS.get(state, ("?", "?"))
    return fancy if has_unicode() else plain


def colour(state: str) -> str:
    """Return the colour of a state, as rich names it."""
    return _COLOURS.get(state, "default")


def bar(done: int, total: int, width: int = 16) -> str:
    """Return a bar that is full only when all is done, and not empty once a part is done."""
    full, empty = ("█", "░") if has_unicode() else ("#", ".")
    cells = width if total == 0 else done * width // total
    if done and not cells:
        cells = 1
    return full * cells + empty * (width - cells)


def duration(seconds: float | None) -> str:
    """Return a duration in words for people."""
    if seconds is None:
        return ""
    if seconds < 0.0995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes:02d} m" if hours else f"{minutes} m {rest:02d} s"


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds between two times, or None if either is unknown."""
    return (end - start).total_seconds() if start is not None and end is not None else None


def instant(text: str | None) -> datetime | None:
    """Parse a time of a document."""
    return None if text is None else datetime.fromisoformat(text)


def when(text: str) -> str:
    """Return a time of a document in the local time zone."""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def took(start: str | None, end: str | None) -> str:
    """Return the duration between two times of a document, in words for people."""
    return duration(seconds_between(instant(start), instant(end)))
