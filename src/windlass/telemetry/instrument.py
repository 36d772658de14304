"""The instruments by name: every metric that a process reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    "windlass_safety_unavailable_total": Instrument(
        "counter", "Questions about jobs to which the safety kernel gave no verdict.", ("topic",)
    ),
    "cordum_scheduler_input_fail_open_total": Instrument(
        "counter", "Jobs that ran because the safety kernel was silent and the fail mode is open.", ("topic",)
    ),
    "windlass_provider_concurrency": Instrument("gauge", "Slots of a provider.", ("provider",)),
}
