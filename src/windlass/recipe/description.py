"""The description of a recipe: a docstring or the `description` of a document, as people read it.

A description is no part of the plan. Two recipes that differ only in their descriptions have the same hash, so a
corrected docstring makes no new version.
"""

from __future__ import annotations

DESCRIPTION_MAX_CHARS = 4_000


def description_of(text: str) -> str:
    """Return the text as PostgreSQL can store it; a long text is cut."""
    # PostgreSQL stores neither NUL nor half of a surrogate pair.
    plain = text.replace("\0", "").encode("utf-8", "replace").decode().strip()
    return plain if len(plain) <= DESCRIPTION_MAX_CHARS else f"{plain[: DESCRIPTION_MAX_CHARS - 1].rstrip()}…"


def first_line(description: str) -> str:
    """Return the first line of a description, for lists."""
    return description.partition("\n")[0]
