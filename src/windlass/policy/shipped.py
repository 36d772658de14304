"""The two policies that come with Windlass: `starter` lets everything pass, `strict` denies by default."""

from __future__ import annotations

from importlib.resources import files

from windlass.core.errors import NotFound
from windlass.core.expression import nearest

SHIPPED = ("starter", "strict")


def shipped_policy(name: str) -> str:
    """Return the text of a shipped policy."""
    if name not in SHIPPED:
        raise NotFound(f"no policy {name!r} comes with Windlass: {nearest(name, SHIPPED)}")
    return files("windlass.policy").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
