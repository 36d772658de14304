"""The expected result of every job of the workload, computed without running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windlass.testing.chaos.workload import BULK, WIDE

SKIPPED = {"skipped": True}
# By recipe: the error with which a job may fail without a fault of Windlass.
FAILS_WITH = {"forsaken": "wait_timeout", "doomed": "permanent", "poison": "worker_lost"}


def _crunched(n: int) -> int:
    for _ in range(20_000):
        n = (n * 31 + 7) % 1_000_003
    return n


def _items(n: int) -> range:
    return range(n, n + 3 + n % 6)


def _chain(n: int) -> int:
    return (n + 1) * 2 + 1


def _diamond(n: int) -> int:
    return (n + 1) * 2 + (n + 1) + 10


def _fan(n: int) -> int:
    return sum(item + 10 for item in _items(n))


def _choice(n: int) -> dict[str, Any]:
    first = n + 1
    even = first * 2 if first % 2 == 0 else SKIPPED
    odd = first + 10 if first % 2 == 1 else SKIPPED
    return {"even": even, "odd": odd, "after": first + 1}


def _patient(n: int) -> int:
    return 2 * (n + 5) + 100 + 1000


def _album(n: int) -> int:
    return n + sum(range(n, n + 2 + n % 3))


ANSWERS: dict[str, Callable[[int], Any]] = {
    "chain": _chain,
    "diamond": _diamond,
    "fan": _fan,
    "cpu_fan": lambda n: sum(_crunched(item) for item in _items(n)),
    "choice": _choice,
    "patient": _patient,
    "bulk": lambda n: BULK + n,
    "picture": lambda n: n + 1,
    "album": _album,
    "approval": lambda n: n + 1,
    "wide": lambda n: sum(item + 1 for item in range(n, n + WIDE)),
    "visitor": lambda n: n + 3,
    "family": lambda n: _fan(n) + sum(_chain(item) for item in _items(n)),
}


def answer(recipe: str, n: int) -> Any:
    """Return the output of a completed job; a recipe that always fails has none."""
    return ANSWERS[recipe](n)
