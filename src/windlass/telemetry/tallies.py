"""Metrics that are derived from other counts when they are read: jobs by recipe and state, attempts by outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from windlass.core.states import JobState
from windlass.telemetry.histogram import LabelledHistogram

LABELS_MAX = 500
LABEL_LENGTH_MAX = 128
OTHER = "other"


class DeclaredMetric(Protocol):
    """The declaration of a metric: what it says, and its labels."""

    @property
    def about(self) -> str:
        """The description."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels."""
        ...


class Labels:
    """Distinguishes names up to a limit, and makes them valid labels."""

    def __init__(self, most: int = LABELS_MAX) -> None:
        self._most = most
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, *names: str) -> tuple[str, ...]:
        """Return the names as labels; `other` for each when there are too many."""
        known = self._known.get(names)
        if known is None:
            if len(self._known) >= self._most:
                return (OTHER,) * len(names)
            known = tuple(name[:LABEL_LENGTH_MAX].encode(errors="replace").decode() for name in names)
            self._known[names] = known
        return known


class Tallies(Collector):
    """Jobs by recipe and state, as last read from the database."""

    def __init__(self, labels: Labels, instruments: Mapping[str, DeclaredMetric]) -> None:
        self._labels = labels
        self._instruments = instruments
        self._rows: list[tuple[str, str, int, float]] = []

    def show(self, rows: Iterable[tuple[str, str, int, float]]) -> None:
        """Set the rows to show: recipe, state, count, seconds."""
        self._rows = list(rows)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics. Called by the registry."""
        together: dict[tuple[str, str], tuple[int, float]] = {}
        for recipe, state, count, seconds in self._rows:
            key = (self._labels.of(recipe)[0], state)
            counted, took_s = together.get(key, (0, 0.0))
            together[key] = (counted + count, took_s + seconds)
        about = self._instruments["windlass_jobs_total"]
        jobs = CounterMetricFamily("windlass_jobs", about.about, labels=about.labels)
        about = self._instruments["windlass_job_seconds"]
        seconds_ = SummaryMetricFamily("windlass_job_seconds", about.about, labels=about.labels)
        for (recipe, state), (count, took_s) in together.items():
            jobs.add_metric([recipe, state], count)
            if state != "QUEUED":
                seconds_.add_metric([recipe, state], count_value=count, sum_value=took_s)
        yield jobs
        yield seconds_
        counts = {key: count for key, (count, _) in together.items()}
        yield from _by_topic(counts, self._instruments)


def _by_topic(counts: Mapping[tuple[str, str], int], instruments: Mapping[str, DeclaredMetric]) -> Iterator[Metric]:
    """Yield the same counts under the words of policies."""
    about = instruments["windlass_jobs_received_total"]
    received = CounterMetricFamily("windlass_jobs_received", about.about, labels=about.labels)
    about = instruments["windlass_jobs_completed_total"]
    completed = CounterMetricFamily("windlass_jobs_completed", about.about, labels=about.labels)
    about = instruments["windlass_safety_denied_total"]
    refused = CounterMetricFamily("windlass_safety_denied", about.about, labels=about.labels)
    for (recipe, state), count in counts.items():
        topic = f"job.{recipe}"
        if state == JobState.QUEUED:
            received.add_metric([topic], count)
            continue
        completed.add_metric([topic, state], count)
        if state == JobState.DENIED:
            refused.add_metric([topic], count)
    yield received
    yield completed
    yield refused


class Attempts(Collector):
    """Attempts by recipe and outcome, derived from the series of their durations."""

    def __init__(self, step_s: LabelledHistogram, labels: Labels, instruments: Mapping[str, DeclaredMetric]) -> None:
        self._step_s = step_s
        self._instruments = instruments
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics. Called by the registry."""
        counts: dict[tuple[str, str], int] = {}
        for (recipe, _, outcome), series in self._step_s.series.items():
            key = (self._labels.of(recipe)[0], outcome)
            counts[key] = counts.get(key, 0) + series.count
        about = self._instruments["windlass_attempts_total"]
        family = CounterMetricFamily("windlass_attempts", about.about, labels=about.labels)
        for labels, count in counts.items():
            family.add_metric(labels, count)
        yield family
