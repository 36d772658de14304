"""Names of `windlass` that load an engine, a database driver or an HTTP client: imported when first asked for.

To write a recipe, or to run a step in a process of its own, takes none of these; both should start quickly. What the
names are is written down for type checkers in `__init__.pyi`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "AsyncClient": "windlass.client.async_client",
    "Client": "windlass.client.client",
    "Extension": "windlass.extension.declaration",
    "Job": "windlass.app.job",
    "JobCancelled": "windlass.pure.job_failed",
    "JobFailed": "windlass.pure.job_failed",
    "Windlass": "windlass.app.windlass",
    "commit": "windlass.worker.commit",
}


def __getattr__(name: str) -> Any:
    """The name, from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'windlass' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
