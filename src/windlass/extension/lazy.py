"""Names of `windlass.extension` that load an engine, imported on first use.

An extension that only declares its parts must not load an engine: commands read declarations too."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the attribute from its module."""
    if name not in ("Parts", "parts"):
        raise AttributeError(f"module 'windlass.extension' has no attribute {name!r}")
    from windlass.extension import facade

    return getattr(facade, name)
