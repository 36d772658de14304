"""The instruments: what is shown parses, is complete, is right, and cannot be made to grow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from windlass.telemetry.exposition import Exposition
from windlass.telemetry.meters import INSTRUMENTS, Meters
from windlass.telemetry.tallies import LABELS_MAX, OTHER

JOB = UUID("01997f00-0000-7000-8000-000000000001")


class Tracer:
    """Hears what a tracer hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def submitted(self, *given: Any) -> None:
        self.heard.append(("submitted", *given))

    def attempt(self, *given: Any) -> Callable[[str], None]:
        self.heard.append(("attempt", *given))
        return lambda outcome: self.heard.append(("outcome", outcome))

    def ended(self, *given: Any) -> None:
        self.heard.append(("ended", *given))


async def shown(meters: Meters) -> dict[str, dict[tuple[str, ...], float]]:
    """Every sample: by name, then by the values of its labels in the order of their names."""
    text = (await Exposition(meters.registry).text()).decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.type != "unknown", family
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), f"{sample.name} has {labels} twice"
            found[sample.name][labels] = sample.value
    return found


@pytest.fixture
def meters() -> Meters:
    return Meters(CollectorRegistry())


def move_everything(meters: Meters) -> None:
    meters.submitted([JOB, JOB], 0.002)
    meters.claimed(3, 10, 0.001)
    meters.settled(4, 0.003)
    meters.attempt(JOB, "film", "cut", None, 1, None, 0.02)("done")
    meters.ended(JOB, "film", "COMPLETED", datetime.now(UTC), datetime.now(UTC), None)
    meters.looped("router", 5, 0.001)
    meters.answered("GET", "/jobs/{job_id}", 200, "read", 0.004)
    meters.limited("rate_limited")
    meters.policy_loaded(3, True)
    meters.streams("job", 1)
    meters.dropped("slow")
    meters.webhook("delivered")
    meters.membership("valid")
    meters.breaker("membership", True)
    meters.watch_pool(lambda: 3, lambda: 5)
    meters.show_queues({"default": (7, 1.5)}, 100)
    meters.show_tallies([("film", "QUEUED", 2, 0.0), ("film", "COMPLETED", 1, 2.5), ("film", "DENIED", 1, 0.1)])
    meters.show_installation(2, 0.25)
    meters.received("fal", "applied")
    meters.called("fal", "start", "ok")
    meters.show_providers([("fal", 4, 2, 7, False)])


async def test_every_instrument_is_shown_once_it_moved(meters: Meters) -> None:
    move_everything(meters)
    text = (await Exposition(meters.registry).text()).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, one in INSTRUMENTS.items():
        family = families.pop(name.removesuffix("_total"))
        assert (family.type, family.documentation) == (one.kind, one.about)
        assert family.samples, f"{name} has no sample"
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert labels == set(one.labels), name
    assert families == {}, "shown, but not in the list"


@pytest.mark.covers("JN-05")
@pytest.mark.parametrize(
    "name",
    [
        *("windlass_jobs_total", "windlass_step_seconds_bucket", "windlass_queue_depth", "windlass_queue_age_seconds"),
        *("windlass_scheduling_lag_seconds_bucket", "windlass_attempts_total", "windlass_claims_total"),
        *("windlass_submit_jobs_bucket", "windlass_claim_steps_bucket", "windlass_settle_reports_bucket"),
        *("windlass_commit_seconds_bucket", "windlass_pool_connections", "windlass_stream_clients"),
    ],
)
async def test_what_operators_were_promised_is_there(meters: Meters, name: str) -> None:
    move_everything(meters)
    assert (await shown(meters))[name]


@pytest.mark.covers("JN-57", "JN-59")
async def test_what_is_shown_is_what_happened(meters: Meters) -> None:
    move_everything(meters)
    meters.claimed(0, 10, 0.001)
    meters.attempt(JOB, "film", "cut", 3, 2, "r1", None)("failed")
    found = await shown(meters)
    assert found["windlass_jobs_total"] == {("film", "QUEUED"): 2, ("film", "COMPLETED"): 1, ("film", "DENIED"): 1}
    assert found["windlass_job_seconds_sum"] == {("film", "COMPLETED"): 2.5, ("film", "DENIED"): 0.1}
    assert found["windlass_attempts_total"] == {("done", "film"): 1, ("failed", "film"): 1}
    assert found["windlass_step_seconds_count"] == {("done", "film", "cut"): 1, ("failed", "film", "cut"): 1}
    assert found["windlass_scheduling_lag_seconds_count"][()] == 1
    assert found["windlass_claims_total"][()] == 2
    assert found["windlass_claim_steps_sum"][()] == 3
    assert found["windlass_submit_jobs_sum"][()] == 2
    assert found["windlass_settle_reports_sum"][()] == 4
    assert found["windlass_commit_seconds_count"] == {("submit",): 1, ("claim",): 2, ("settle",): 1}
    assert found["windlass_pool_connections"] == {("busy",): 3, ("idle",): 5}
    assert found["windlass_queue_depth"] == {("default",): 7}
    assert found["windlass_queue_is_capped"] == {("default",): 0}
    assert found["windlass_http_requests_total"] == {("GET", "read", "/jobs/{job_id}", "200"): 1}


@pytest.mark.covers("COR-115", "COR-116")
async def test_jobs_are_counted_by_topic_too(meters: Meters) -> None:
    meters.show_tallies([("film", "QUEUED", 5, 0.0), ("film", "COMPLETED", 2, 1.0), ("film", "DENIED", 3, 0.0)])
    found = await shown(meters)
    assert found["windlass_jobs_received_total"] == {("job.film",): 5}
    assert set(found["windlass_jobs_completed_total"].values()) == {2, 3}
    assert found["windlass_safety_denied_total"] == {("job.film",): 3}


async def test_names_beyond_the_limit_are_counted_together(meters: Meters) -> None:
    for number in range(LABELS_MAX + 50):
        meters.attempt(JOB, f"recipe{number}", f"step{number}", None, 1, None, None)("done")
    meters.show_tallies([(f"recipe{number}", "QUEUED", 1, 0.0) for number in range(LABELS_MAX + 50)])
    meters.show_queues({f"queue{number}": (1, float(number)) for number in range(LABELS_MAX + 50)}, 100)
    found = await shown(meters)
    assert len(found["windlass_step_seconds_count"]) == LABELS_MAX + 1
    assert found["windlass_step_seconds_count"]["done", OTHER, OTHER] == 50
    assert found["windlass_attempts_total"]["done", OTHER] == 50
    assert found["windlass_jobs_total"][OTHER, "QUEUED"] == 50
    assert found["windlass_queue_depth"][OTHER,] == 50
    assert found["windlass_queue_age_seconds"][OTHER,] == LABELS_MAX + 49


async def test_names_of_any_kind_can_be_shown(meters: Meters) -> None:
    for name in ('a"b', "back\\slash", "line\nend", "half \ud800", "x" * 100_000, "", "ключ"):
        meters.attempt(JOB, name, name, None, 1, None, None)("done")
    meters.answered("BR\nEW", "none", 405, "read", 0.001)
    found = await shown(meters)
    assert sum(found["windlass_attempts_total"].values()) == 7
    assert found["windlass_http_requests_total"] == {(OTHER, "read", "none", "405"): 1}


async def test_a_queue_that_is_empty_again_is_shown_as_that(meters: Meters) -> None:
    meters.show_queues({"a": (101, 5.0), "b": (1, 1.0)}, 100)
    assert (await shown(meters))["windlass_queue_is_capped"] == {("a",): 1, ("b",): 0}
    meters.show_queues({"b": (2, 2.0)}, 100)
    assert (await shown(meters))["windlass_queue_depth"] == {("a",): 0, ("b",): 2}
    assert (await shown(meters))["windlass_queue_is_capped"] == {("a",): 0, ("b",): 0}


async def test_a_tracer_hears_of_submits_attempts_and_endings() -> None:
    tracer = Tracer()
    meters = Meters(CollectorRegistry(), tracer)
    at = datetime.now(UTC)
    meters.submitted([JOB], 0.5)
    meters.attempt(JOB, "film", "cut", 2, 1, "r1", None)("timeout")
    meters.ended(JOB, "film", "FAILED", at, at, "r1")
    assert tracer.heard == [
        ("submitted", JOB, 0.5),
        ("attempt", JOB, "film", "cut", 2, 1, "r1"),
        ("outcome", "timeout"),
        ("ended", JOB, "film", "FAILED", at, at, "r1", None),
    ]
