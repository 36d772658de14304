"""Adds metrics of extensions to the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# One process may both serve and work: the second part reuses the instruments of the first.
_made: WeakKeyDictionary[CollectorRegistry, dict[str, Any]] = WeakKeyDictionary()


class Declared(Protocol):
    """The declaration of a metric."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def about(self) -> str: ...  # noqa: D102
    @property
    def labels(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def buckets(self) -> tuple[float, ...]: ...  # noqa: D102


def added(registry: CollectorRegistry, declared: Mapping[str, Declared]) -> dict[str, Any]:
    """Return the instruments of these names, created if missing. Raises ValueError if a name is taken."""
    there = _made.setdefault(registry, {})
    for name, one in declared.items():
        if name not in there:
            there[name] = _instrument(registry, name, one)
    return {name: there[name] for name in declared}


def _instrument(registry: CollectorRegistry, name: str, one: Declared) -> Any:
    match one.kind:
        case "counter":
            return Counter(name, one.about, one.labels, registry=registry)
        case "gauge":
            return Gauge(name, one.about, one.labels, registry=registry)
        case _:
            buckets = one.buckets or Histogram.DEFAULT_BUCKETS
            return Histogram(name, one.about, one.labels, registry=registry, buckets=buckets)
