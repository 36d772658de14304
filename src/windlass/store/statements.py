"""SQL is text in `sql/*.sql`: this reads the files once and hands out each statement by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@cache
def _statements() -> dict[str, str]:
    entries = sorted(files("windlass.store").joinpath("sql").iterdir(), key=lambda entry: entry.name)
    return named((entry.name, entry.read_text(encoding="utf-8")) for entry in entries)


def named(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The statements of these files by name; each file is its name and its text."""
    found: dict[str, str] = {}
    for _, text in texts:
        parts = _NAME.split(text)
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two SQL statements are named {name}")
            found[name] = body.strip()
    return found


def sql(name: str) -> str:
    """The statement of this name."""
    return _statements()[name]
