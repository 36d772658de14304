"""The histogram without locks shows what Prometheus's own shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from windlass.telemetry.exposition import _Plain
from windlass.telemetry.histogram import LabelledHistogram

BOUNDS = (0.005, 0.5, 1, 30)
VALUES = st.one_of(st.sampled_from(BOUNDS), st.floats(0, 100))


def samples(registry: CollectorRegistry) -> list[tuple[str, dict[str, str], float]]:
    text = generate_latest(_Plain(registry)).decode()
    return [
        (sample.name, sample.labels, round(sample.value, 6))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), VALUES), max_size=50))
def test_it_shows_what_prometheus_own_shows(told: list[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    own = LabelledHistogram("things_seconds", "Things.", ("kind",), BOUNDS)
    ours.register(own)
    histogram = Histogram("things_seconds", "Things.", ("kind",), registry=theirs, buckets=BOUNDS)
    for kind, value in told:
        own.of(kind).observe(value)
        histogram.labels(kind).observe(value)
    key = str
    assert sorted(samples(ours), key=key) == sorted(samples(theirs), key=key)
