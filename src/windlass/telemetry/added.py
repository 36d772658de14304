"""Metrics that are not Windlass's own, in the same registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# A process may serve and work: both halves find the instruments that the first one made.
_made: WeakKeyDictionary[CollectorRegistry, dict[str, Any]] = WeakKeyDictionary()


class Declared(Protocol):
    """What is known of a metric before it is made."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def about(self) -> str: ...  # noqa: D102
    @property
    def labels(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def buckets(self) -> tuple[float, ...]: ...  # noqa: D102


def added(registry: CollectorRegistry, declared: Mapping[str, Declared]) -> dict[str, Any]:
    """The instruments of these names, made if they are not there; ValueError if a name is taken."""
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
