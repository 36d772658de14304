"""The instruments, by name, and the `Observer` that updates them.

Nothing here may grow with the requests of callers. A label never contains an id, a caller or a path with an id. Names
of recipes, steps and queues are distinguished up to LABELS_MAX, then counted together as `other`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal
from uuid import UUID

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from windlass.telemetry.histogram import LabelledHistogram, Series
from windlass.telemetry.tallies import OTHER, Attempts, Labels, Tallies
from windlass.telemetry.traces import Tracer

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_STEP_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
_COMMIT_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)
_LAG_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 3600)
_HTTP_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True)
class Instrument:
    """The declaration of one metric."""

    kind: Literal["counter", "gauge", "histogram", "summary"]
    about: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


# The whole list; docs/reference/metrics.md is generated from it. Metrics from the database are the same in every
# process; the others are those of the answering process.
INSTRUMENTS: dict[str, Instrument] = {
    "windlass_jobs_total": Instrument(
        "counter", "Jobs by recipe and state: QUEUED counts submissions, the others endings.", ("recipe", "status")
    ),
    "windlass_jobs_received_total": Instrument(
        "counter", "Submitted jobs, by the topic that policies see.", ("topic",)
    ),
    "windlass_jobs_completed_total": Instrument("counter", "Ended jobs, by topic and ending.", ("topic", "status")),
    "windlass_safety_denied_total": Instrument("counter", "Jobs that the policy denied, by topic.", ("topic",)),
    "windlass_job_seconds": Instrument(
        "summary", "From a job's submission to its end, by recipe and ending.", ("recipe", "status")
    ),
    "windlass_queue_depth": Instrument("gauge", "Steps that wait in a queue for a worker.", ("queue",)),
    "windlass_queue_age_seconds": Instrument("gauge", "Age of the oldest job with a step in the queue.", ("queue",)),
    "windlass_queue_is_capped": Instrument(
        "gauge", "1 if the queue holds more steps than are counted (queue_depth_max).", ("queue",)
    ),
    "windlass_feed_lag_seconds": Instrument(
        "gauge", "How long an open transaction delays streams, audit and webhooks."
    ),
    "windlass_engines": Instrument("gauge", "Processes whose engine loops ran in the last 30 s."),
    "windlass_step_seconds": Instrument(
        "histogram", "How long handlers ran, by how the attempt ended.", ("recipe", "step", "outcome"), _STEP_S
    ),
    "windlass_attempts_total": Instrument("counter", "Attempts by how they ended.", ("recipe", "outcome")),
    "windlass_scheduling_lag_seconds": Instrument(
        "histogram", "From a job's submission to the start of its first handler.", (), _LAG_S
    ),
    "windlass_claims_total": Instrument("counter", "Claims, including claims that found nothing."),
    "windlass_claim_steps": Instrument("histogram", "Steps taken by one claim.", (), _SIZES),
    "windlass_submit_jobs": Instrument("histogram", "Jobs made by one commit.", (), _SIZES),
    "windlass_settle_reports": Instrument("histogram", "Attempts settled by one commit.", (), _SIZES),
    "windlass_commit_seconds": Instrument(
        "histogram", "Duration of a commit, including the round trip.", ("operation",), _COMMIT_S
    ),
    "windlass_pool_connections": Instrument("gauge", "Connections to PostgreSQL, busy or idle.", ("state",)),
    "windlass_loop_actions_total": Instrument("counter", "Actions of the engine's duties.", ("duty",)),
    "windlass_loop_seconds": Instrument("histogram", "How long one turn of a duty took.", ("duty",), _COMMIT_S),
    "windlass_http_requests_total": Instrument(
        "counter",
        "Requests answered, by route as written in the API document.",
        ("method", "route", "status", "operation"),
    ),
    "windlass_http_seconds": Instrument(
        "histogram", "Time until the response began.", ("method", "route", "operation"), _HTTP_S
    ),
    "windlass_limited_total": Instrument("counter", "Requests answered with 429, by reason.", ("reason",)),
    "windlass_stream_clients": Instrument(
        "gauge", "Open event streams, of one job or of all jobs of a caller.", ("kind",)
    ),
    "windlass_stream_dropped_total": Instrument("counter", "Streams that were cut off, by reason.", ("reason",)),
    "windlass_webhooks_total": Instrument("counter", "Webhook deliveries tried, by result.", ("result",)),
    "windlass_policy_version": Instrument(
        "gauge", "The version of the policy that this process judges by; it counts publishes. 0: none."
    ),
    "windlass_policy_loads_total": Instrument(
        "counter", "Versions of the policy that this process compiled, or could not use.", ("result",)
    ),
    "windlass_membership_total": Instrument("counter", "Requests to the Membership service, by result.", ("result",)),
    "windlass_breaker_open": Instrument("gauge", "1 while a circuit breaker blocks requests.", ("name",)),
    "windlass_provider_webhooks_total": Instrument(
        "counter", "Webhooks from providers, by result.", ("provider", "result")
    ),
    "windlass_provider_calls_total": Instrument(
        "counter", "Requests to providers, by call and result.", ("provider", "call", "result")
    ),
    "windlass_provider_slots": Instrument(
        "gauge", "Steps that hold or wait for a provider's slot.", ("provider", "state")
    ),
    "windlass_provider_concurrency": Instrument("gauge", "Slots of a provider.", ("provider",)),
}


# Observed so often that Prometheus's own histogram would cost too much.
_SPREADS = frozenset({"windlass_step_seconds", "windlass_scheduling_lag_seconds", "windlass_http_seconds"})


# The counters that collectors derive from other counts.
_DERIVED = frozenset(
    {
        "windlass_jobs_total",
        "windlass_attempts_total",
        "windlass_jobs_received_total",
        "windlass_jobs_completed_total",
        "windlass_safety_denied_total",
    }
)


class Meters:
    """All instruments of a process. It is an `Observer`, with further methods for the API and its parts."""

    def __init__(self, registry: CollectorRegistry, tracer: Tracer | None = None) -> None:
        self.registry = registry
        self.tracer = tracer
        self._recipes = Labels()
        self._steps = Labels()
        self._queues = Labels()
        # The queues shown so far, by their labels.
        self._shown: Iterable[tuple[str, ...]] = ()
        self._tallies = Tallies(self._recipes, INSTRUMENTS)
        registry.register(self._tallies)
        made: dict[str, Any] = {name: _make(name, one, registry) for name, one in INSTRUMENTS.items()}
        self._depth: Gauge = made["windlass_queue_depth"]
        self._age: Gauge = made["windlass_queue_age_seconds"]
        self._capped: Gauge = made["windlass_queue_is_capped"]
        self._feed_lag: Gauge = made["windlass_feed_lag_seconds"]
        self._engines: Gauge = made["windlass_engines"]
        self._step_s: LabelledHistogram = made["windlass_step_seconds"]
        registry.register(Attempts(self._step_s, self._recipes, INSTRUMENTS))
        self._lag_s = made["windlass_scheduling_lag_seconds"].of()
        self._claims: Counter = made["windlass_claims_total"]
        self._claim_steps: Histogram = made["windlass_claim_steps"]
        self._submit_jobs: Histogram = made["windlass_submit_jobs"]
        self._settle_reports: Histogram = made["windlass_settle_reports"]
        commits: Histogram = made["windlass_commit_seconds"]
        self._submit_s = commits.labels("submit")
        self._claim_s = commits.labels("claim")
        self._settle_s = commits.labels("settle")
        self._pool: Gauge = made["windlass_pool_connections"]
        self._loop_actions: Counter = made["windlass_loop_actions_total"]
        self._loop_s: Histogram = made["windlass_loop_seconds"]
        self._http: Counter = made["windlass_http_requests_total"]
        self._http_s: LabelledHistogram = made["windlass_http_seconds"]
        # By method, route, status and operation: finding the labels costs more than counting.
        self._answers: dict[tuple[str, str, int, str], tuple[Counter, Series]] = {}
        self._limited: Counter = made["windlass_limited_total"]
        self._streams: Gauge = made["windlass_stream_clients"]
        for kind in ("job", "jobs"):
            self._streams.labels(kind)
        self._dropped: Counter = made["windlass_stream_dropped_total"]
        self._webhooks: Counter = made["windlass_webhooks_total"]
        self._membership: Counter = made["windlass_membership_total"]
        self._breaker: Gauge = made["windlass_breaker_open"]
        self._policy: Gauge = made["windlass_policy_version"]
        self._policy_loads: Counter = made["windlass_policy_loads_total"]
        self._providers = Labels()
        self._received: Counter = made["windlass_provider_webhooks_total"]
        self._called: Counter = made["windlass_provider_calls_total"]
        self._slots: Gauge = made["windlass_provider_slots"]
        self._places: Gauge = made["windlass_provider_concurrency"]
        # By recipe, step and outcome: finding the labels costs more than counting.
        self._ends: dict[tuple[str, str, str], Series] = {}

    # The observer.

    def submitted(self, job_ids: Sequence[UUID], seconds: float) -> None:
        """Record a commit that made these jobs."""
        self._submit_jobs.observe(len(job_ids))
        self._submit_s.observe(seconds)
        if self.tracer is not None:
            for job_id in job_ids:
                self.tracer.submitted(job_id, seconds)

    def claimed(self, steps: int, wanted: int, seconds: float) -> None:
        """Record a claim that took this many steps."""
        self._claims.inc()
        self._claim_s.observe(seconds)
        if steps:
            self._claim_steps.observe(steps)

    def settled(self, reports: int, seconds: float) -> None:
        """Record a commit that settled this many attempts."""
        self._settle_reports.observe(reports)
        self._settle_s.observe(seconds)

    def attempt(
        self,
        job_id: UUID,
        recipe: str,
        step: str,
        index: int | None,
        attempt: int,
        request_id: str | None,
        lag_s: float | None,
    ) -> Callable[[str], None]:
        """Record the start of a handler. Returns the callback for its end."""
        if lag_s is not None:
            self._lag_s.observe(lag_s)
        span = None
        if self.tracer is not None:
            span = self.tracer.attempt(job_id, recipe, step, index, attempt, request_id)
        return partial(self._attempt_ended, recipe, step, time.perf_counter(), span)

    def _attempt_ended(
        self, recipe: str, step: str, began_s: float, span: Callable[[str], None] | None, outcome: str
    ) -> None:
        seconds = time.perf_counter() - began_s
        ends = self._ends.get((recipe, step, outcome))
        if ends is None:
            ends = self._ends_of(recipe, step, outcome)
        ends.observe(seconds)
        if span is not None:
            span(outcome)

    def _ends_of(self, recipe: str, step: str, outcome: str) -> Series:
        labels = self._steps.of(recipe, step)
        ends = self._step_s.of(*labels, outcome)
        if labels[1] != OTHER:
            self._ends[recipe, step, outcome] = ends
        return ends

    def ended(
        self,
        job_id: UUID,
        recipe: str,
        state: str,
        created_at: datetime,
        finished_at: datetime,
        request_id: str | None,
        parent: UUID | None = None,
    ) -> None:
        """Record the end of a job in its trace. The database counts it, where every process can read it."""
        if self.tracer is not None:
            self.tracer.ended(job_id, recipe, state, created_at, finished_at, request_id, parent)

    def looped(self, duty: str, count: int, seconds: float) -> None:
        """Record one turn of an engine duty."""
        self._loop_s.labels(duty).observe(seconds)
        if count:
            self._loop_actions.labels(duty).inc(count)

    # The service.

    def answered(self, method: str, route: str, status: int, operation: str, seconds: float) -> None:
        """Record an answered request. `route` is the path from the API document, never the requested path."""
        method = method if method in METHODS else OTHER
        found = self._answers.get((method, route, status, operation))
        if found is None:
            counter = self._http.labels(method, route, str(status), operation)
            found = (counter, self._http_s.of(method, route, operation))
            self._answers[method, route, status, operation] = found
        found[0].inc()
        found[1].observe(seconds)

    def limited(self, reason: str) -> None:
        """Record a request answered with 429."""
        self._limited.labels(reason).inc()

    def streams(self, kind: str, change: int) -> None:
        """Record an opened (1) or ended (-1) stream."""
        self._streams.labels(kind).inc(change)

    def dropped(self, reason: str) -> None:
        """Record a stream that was cut off."""
        self._dropped.labels(reason).inc()

    def webhook(self, result: str) -> None:
        """Record a webhook delivery, sent or failed."""
        self._webhooks.labels(result).inc()

    def membership(self, result: str) -> None:
        """Record a request to the Membership service."""
        self._membership.labels(result).inc()

    def policy_loaded(self, version: int, is_good: bool) -> None:
        """Record a version of the policy that was compiled, or that cannot be used."""
        self._policy.set(version)
        self._policy_loads.labels("ok" if is_good else "failed").inc()

    def breaker(self, name: str, is_open: bool) -> None:
        """Record that a circuit breaker opened or closed."""
        self._breaker.labels(name).set(is_open)

    def received(self, provider: str, result: str) -> None:
        """Record a webhook from a provider, with its result."""
        self._received.labels(*self._providers.of(provider), result).inc()

    def called(self, provider: str, call: str, result: str) -> None:
        """Record a request to a provider: start, status or cancel."""
        self._called.labels(*self._providers.of(provider), call, result).inc()

    # Values that are read on a scrape.

    def watch_pool(self, busy: Callable[[], float], idle: Callable[[], float]) -> None:
        """Read the pool's connections on every scrape."""
        self._pool.labels("busy").set_function(busy)
        self._pool.labels("idle").set_function(idle)

    def show_queues(self, depths: Mapping[str, tuple[int, float]], most: int) -> None:
        """Show these queues (number of steps, age in seconds). Queues shown before and missing now are empty."""
        together = dict.fromkeys(self._shown, (0, 0.0, False))
        for queue, (count, age_s) in depths.items():
            labels = self._queues.of(queue)
            counted, oldest_s, is_capped = together.get(labels, (0, 0.0, False))
            together[labels] = (counted + count, max(oldest_s, age_s), is_capped or count > most)
        for labels, (count, age_s, is_capped) in together.items():
            self._depth.labels(*labels).set(count)
            self._age.labels(*labels).set(age_s)
            self._capped.labels(*labels).set(is_capped)
        self._shown = together.keys()

    def show_tallies(self, rows: Iterable[tuple[str, str, int, float]]) -> None:
        """Show these jobs by recipe and state."""
        self._tallies.show(rows)

    def show_providers(self, rows: Iterable[tuple[str, int, int, int, bool]]) -> None:
        """Show these providers: name, slots, slots held, steps waiting, whether the breaker is open."""
        for name, places, held, waiting, is_open in rows:
            (label,) = self._providers.of(name)
            self._places.labels(label).set(places)
            self._slots.labels(label, "held").set(held)
            self._slots.labels(label, "waiting").set(waiting)
            self._breaker.labels(f"provider {label}").set(is_open)

    def show_installation(self, engines: int, feed_lag_s: float) -> None:
        """Show the number of running engines, and the lag of the feed."""
        self._engines.set(engines)
        self._feed_lag.set(feed_lag_s)


def _make(name: str, one: Instrument, registry: CollectorRegistry) -> Any:
    match one.kind:
        case "counter" if name not in _DERIVED:
            return Counter(name, one.about, one.labels, registry=registry)
        case "histogram" if name in _SPREADS:
            histogram = LabelledHistogram(name, one.about, one.labels, one.buckets)
            registry.register(histogram)
            return histogram
        case "gauge":
            return Gauge(name, one.about, one.labels, registry=registry)
        case "histogram":
            return Histogram(name, one.about, one.labels, registry=registry, buckets=one.buckets)
        case _:
            # `Tallies` and `Attempts` count these.
            return None
