"""A histogram for events that happen thousands of times a second.

Prometheus's own histogram takes a lock or two for each observation, which is most of its cost. This one is updated and
read only on the process's event loop, so it needs no lock.
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
        """Record one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def count(self) -> int:
        """The number of observations."""
        return sum(self._counts)

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Add it in Prometheus's form: each bucket includes the smaller ones."""
        so_far, buckets = 0, []
        for bound, count in zip((*self._bounds, inf), self._counts, strict=True):
            so_far += count
            buckets.append(("+Inf" if bound == inf else str(float(bound)), float(so_far)))
        family.add_metric(labels, buckets, self._sum)


class LabelledHistogram(Collector):
    """A histogram with labels."""

    def __init__(self, name: str, about: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self._name = name
        self._about = about
        self._labels = labels
        self._bounds = tuple(bounds)
        self.series: dict[tuple[str, ...], Series] = {}

    def of(self, *labels: str) -> Series:
        """Return the series of these labels."""
        found = self.series.get(labels)
        if found is None:
            found = self.series[labels] = Series(self._bounds)
        return found

    def collect(self) -> Iterator[Metric]:
        """Yield the metric. Called by the registry."""
        family = HistogramMetricFamily(self._name, self._about, labels=self._labels)
        for labels, series in self.series.items():
            series.add_to(family, labels)
        yield family
