"""A histogram for what happens thousands of times a second.

Prometheus's own takes a lock or two for each observation, which is most of what it costs. This one is told and read on
the process's event loop only, so it needs none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import inf

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class Series:
    """The observations under one set of labels."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Show it as Prometheus wants it: each bucket holds those before it."""
        so_far, buckets = 0, []
        for bound, count in zip((*self._bounds, inf), self._counts, strict=True):
            so_far += count
            buckets.append(("+Inf" if bound == inf else str(float(bound)), float(so_far)))
        family.add_metric(labels, buckets, self._sum)


class Spread(Collector):
    """A histogram with labels."""

    def __init__(self, name: str, about: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self._name = name
        self._about = about
        self._labels = labels
        self._bounds = tuple(bounds)
        self.series: dict[tuple[str, ...], Series] = {}

    def of(self, *labels: str) -> Series:
        """What is observed under these labels."""
        found = self.series.get(labels)
        if found is None:
            found = self.series[labels] = Series(self._bounds)
        return found

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        family = HistogramMetricFamily(self._name, self._about, labels=self._labels)
        for labels, series in self.series.items():
            series.add_to(family, labels)
        yield family
