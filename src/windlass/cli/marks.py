"""How a state looks: a glyph, a colour and always its word, so that no meaning hangs on colour alone."""

from __future__ import annotations

import sys

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
    """Whether the output takes more than ASCII."""
    # The original stream: while a live picture is shown, `sys.stdout` is a stand-in without an encoding.
    return (getattr(sys.__stdout__, "encoding", None) or "ascii").lower().replace("-", "").startswith("utf")


def glyph(state: str) -> str:
    """The sign of a state."""
    fancy, plain = _GLYPHS.get(state, ("?", "?"))
    return fancy if has_unicode() else plain


def colour(state: str) -> str:
    """The colour of a state, as rich names it."""
    return _COLOURS.get(state, "default")


def bar(done: int, total: int, width: int = 16) -> str:
    """A bar that is full only when everything is done, and not empty once anything is."""
    full, empty = ("█", "░") if has_unicode() else ("#", ".")
    cells = width if total == 0 else done * width // total
    if done and not cells:
        cells = 1
    return full * cells + empty * (width - cells)


def duration(seconds: float | None) -> str:
    """A length of time as people say it."""
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
