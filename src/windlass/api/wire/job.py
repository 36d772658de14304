"""Jobs on the wire. Here, and only here, a job's `id` is called `job_id` and its `state` `status`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from windlass.api.tracebacks import shown_error
from windlass.api.wire.money import Money
from windlass.api.wire.problem import Problem
from windlass.api.wire.wire import Asked, Duration, Text, Time, Told
from windlass.views.activity import Doing
from windlass.views.read import JobView

BATCH_MAX = 1_000
VERSION_MAX = 2**31 - 1
_LINKS = ("self", "input", "output", "graph", "steps", "events", "why", "costs", "stream")


class WebhookWish(Asked):
    """Where to tell how the job ended."""

    url: str = Field(max_length=2_000, examples=["https://example.com/hooks/windlass"])
    secret: str = Field(max_length=200, description="`whsec_` and base64 of 24 to 64 bytes; signs what is sent.")


class JobRequest(Asked):
    """A job that is asked for."""

    recipe: Text = Field(examples=["hello"])
    inputs: dict[str, Any] = Field(default={}, description="What the recipe takes; its schema is at /recipes/{name}.")
    labels: dict[Text, Text] = Field(default={}, max_length=64)
    priority: int = Field(
        default=0,
        ge=-100,
        le=100,
        description="Higher goes first. Above `priority_max` (10) it takes the scope `priority:high`.",
    )
    deadline: Duration | None = Field(default=None, description="How long it may run, from now on.")
    ttl: Duration | None = Field(
        default=None,
        description="How long it may wait and run in all; else as its recipe says, or 24 hours and the recipe's waits.",
    )
    version: int | None = Field(default=None, ge=1, le=VERSION_MAX, description="Of the recipe; the newest.")
    webhook: WebhookWish | None = None
    budget: Money | None = Field(default=None, description="How much its steps may spend; else there is no limit.")
    idempotency_key: str | None = Field(
        default=None,
        description="In a batch, the item's own. For one job the header Idempotency-Key is the usual place.",
    )


class BatchRequest(Asked):
    """Many jobs at once: each costs as much as a request of its own."""

    jobs: list[JobRequest] = Field(min_length=1)


class JobDocument(Told):
    """A job, without its payloads: those have addresses of their own, under `links`."""

    job_id: UUID
    recipe: str
    recipe_version: int | None
    plan: str
    status: str
    is_paused: bool
    caller: str
    priority: int
    labels: dict[str, str]
    idempotency_key: str | None
    correlation_id: str | None
    progress_pct: float | None
    progress_message: str | None
    steps_total: int
    steps_open: int
    steps_failed: int
    seq: int = Field(description="The number of its last event when it was read; it only grows.")
    failed_step: str | None
    error: Any
    parent_job: UUID | None
    retry_of: UUID | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    updated_at: Time
    deadline_at: Time | None
    expires_at: Time | None
    deleted_at: Time | None
    trace_id: str
    links: dict[str, str]


class ListedJob(JobDocument):
    """A job in a list, with what it is doing now. `status` says how far it has come, and not what it waits for."""

    activity: Literal["running", "waiting", "queued", "sleeping", "paused"] | None = Field(
        description="`waiting`: for an event that somebody sends. `running`: an attempt is under way, or a provider "
        "or a child job works for it. `queued`: a step is ready. `sleeping`: only time has to pass. Null: finished."
    )
    waiting_for: str | None = Field(
        description="What for: `event:<name>`, `timer`, `retry`, `snooze`, `external:<provider>`, `child`, `slot` or "
        "`budget:<scope>:<name>`."
    )


class JobChanged(JobDocument):
    """A job after something was done to it; `changed` is false when there was nothing to do."""

    changed: bool


class JobAccepted(JobDocument):
    """A job that is stored. `is_new` is false when an earlier request with the same key made it."""

    is_new: bool


class Accepted(Told):
    """One job of a batch that is stored."""

    job_id: UUID
    is_new: bool


class BatchAccepted(Told):
    """An answer for each job of a batch, in order."""

    items: list[Accepted | Problem]
    accepted: int
    refused: int


class JobPage(Told):
    """Jobs, the newest first. A page may be short, or empty, while `next` is given: then go on with it."""

    items: list[ListedJob]
    next: str | None


def job_values(job: JobView) -> dict[str, Any]:
    """The fields of a job's document."""
    progress = job.progress if isinstance(job.progress, Mapping) else {}
    error = job.error if isinstance(job.error, Mapping) else {}
    return {
        "job_id": job.id,
        "recipe": job.recipe,
        "recipe_version": job.recipe_version,
        "plan": job.plan,
        "status": str(job.state),
        "is_paused": job.is_paused,
        "caller": job.caller,
        "priority": job.priority,
        "labels": job.labels or {},
        "idempotency_key": job.idempotency_key,
        "correlation_id": job.correlation_id,
        "progress_pct": progress.get("pct"),
        "progress_message": progress.get("message"),
        "steps_total": job.steps_total,
        "steps_open": job.steps_open,
        "steps_failed": job.steps_failed,
        "seq": job.event_seq,
        "failed_step": error.get("step") or None,
        "error": shown_error(job.error),
        "parent_job": job.parent_job,
        "retry_of": job.retry_of,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "updated_at": job.finished_at or job.started_at or job.created_at,
        "deadline_at": job.deadline_at,
        "expires_at": job.expires_at,
        "deleted_at": job.deleted_at,
        # A job is a trace, so its id says where to look for it.
        "trace_id": job.id.hex,
        "links": {name: f"/jobs/{job.id}" + ("" if name == "self" else f"/{name}") for name in _LINKS},
    }


def job_document(job: JobView) -> JobDocument:
    """A job's document."""
    # The values come from our own rows; checking them again would cost more than reading them did.
    return JobDocument.model_construct(**job_values(job))


def listed_job(job: JobView, doing: Doing | None) -> ListedJob:
    """The document of a job in a list."""
    activity, waiting_for = (None, None) if doing is None else (str(doing.activity), doing.waiting_for)
    return ListedJob.model_construct(**job_values(job), activity=activity, waiting_for=waiting_for)
