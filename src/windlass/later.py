"""Names of `windlass` that load the engine and the database driver: imported when they are first asked for.

To write a recipe, or to run a step in a process of its own, takes neither; both should start quickly. What the names
are is written down for type checkers in `__init__.pyi`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Job": "windlass.app.job",
    "JobCancelled": "windlass.app.job",
    "JobFailed": "windlass.app.job",
    "Windlass": "windlass.app.windlass",
}


def __getattr__(name: str) -> Any:
    """The name, from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'windlass' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
