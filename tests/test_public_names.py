"""What `windlass` promises to its users by name. A name is added here on purpose, and none goes by accident."""

from __future__ import annotations

import windlass
import windlass.testing

PUBLIC = [
    "App", "AsyncClient", "Cancel", "Client", "Context", "Extension", "Job", "JobCancelled", "JobFailed",
    "Parked", "Permanent", "Recipe", "Retry", "Snooze", "Step", "Transient", "Windlass", "WindlassError", "approve",
    "call", "commit", "context", "errors", "index", "item", "load", "provider", "recipe", "savepoint", "sleep", "step",
    "text",
    "wait_for",
]  # fmt: skip
TESTING = ["Harness", "VirtualClock", "fail_always", "fail_times", "harness", "returning"]


def test_the_public_names_are_these() -> None:
    assert sorted(windlass.__all__) == sorted(PUBLIC)
    assert [name for name in windlass.__all__ if not hasattr(windlass, name)] == []


def test_the_public_names_for_tests_are_these() -> None:
    assert sorted(windlass.testing.__all__) == sorted(TESTING)


def test_what_is_public_says_what_it_is_for() -> None:
    silent = [name for name in PUBLIC if not (getattr(windlass, name, None).__doc__ or "").strip()]
    assert [name for name in silent if name not in ("index", "item")] == []
