"""Jobs on the wire."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
from pydantic import Field

from windlass.api.wire.money import Money
from windlass.api.wire.problem import Denial, Problem
from windlass.api.wire.wire import Asked, Duration, Text, Time, Told, rfc3339
from windlass.core.states import JobState
from windlass.core.undo import Effects
from windlass.documents.job import job_values as job_values
from windlass.documents.job import listed_values
from windlass.views.activity import Activity, Doing
from windlass.views.read import JobView

BATCH_MAX = 1_000
VERSION_MAX = 2**31 - 1
_TIMES = ("created_at", "started_at", "finished_at", "updated_at", "deadline_at", "expires_at", "deleted_at")


class WebhookWish(Asked):
    """The webhook that reports the end of the job."""

    url: str = Field(max_length=2_000, examples=["https://example.com/hooks/windlass"])
    secret: str = Field(max_length=200, description="`whsec_` and base64 of 24 to 64 bytes; signs the webhook.")


class JobRequest(Asked):
    """A request for a job."""

    recipe: Text = Field(examples=["hello"])
    inputs: dict[str, Any] = Field(
        default={}, description="The inputs of the recipe; their schema is at /recipes/{name}."
    )
    labels: dict[Text, Text] = Field(default={}, max_length=64)
    priority: int = Field(
        default=0,
        ge=-100,
        le=100,
        description="Higher runs first. Above `priority_max` (10) the key needs the scope `priority:high`.",
    )
    deadline: Duration | None = Field(default=None, description="The time after which the job ends as TIMEOUT.")
    ttl: Duration | None = Field(
        default=None,
        description="The time after which the job ends as EXPIRED. Default: the recipe's, or 24 hours plus its waits.",
    )
    version: int | None = Field(
        default=None, ge=1, le=VERSION_MAX, description="The recipe's version. Default: the newest."
    )
    webhook: WebhookWish | None = None
    budget: Money | None = Field(default=None, description="The amount that its steps may spend. Default: no limit.")
    idempotency_key: str | None = Field(
        default=None,
        description="For each item of a batch. A single job usually has it in the header Idempotency-Key.",
    )


class BatchRequest(Asked):
    """Many jobs at once. Each job costs as much as a separate request."""

    jobs: list[JobRequest] = Field(min_length=1)


class JobDocument(Told):
    """A job without its payloads; `links` has their addresses."""

    job_id: UUID
    recipe: str
    recipe_version: int | None
    plan: str
    status: JobState
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
    seq: int = Field(description="The number of the job's last event at the time of the read; it only grows.")
    failed_step: str | None
    error: Any
    parent_job: UUID | None
    retry_of: UUID | None
    effects: Effects = Field(
        description="What became of the effects of the job's steps. `none`: no undo was needed. `standing`: they were "
        "kept, or a person must allow the undo. `undoing`, `undone`, `failed`: the state of `undo_job_id`."
    )
    undo_job_id: UUID | None = Field(description="The job that undoes this one's effects.")
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    updated_at: Time = Field(description="The time of the job's last event.")
    stuck_for: int | None = Field(
        description="The seconds since the last change of an open job, in whole minutes, from 30 minutes on. "
        "`/jobs/{job_id}/why` explains the wait. Null for a paused job."
    )
    deadline_at: Time | None
    expires_at: Time | None
    deleted_at: Time | None
    trace_id: str
    links: dict[str, str]


class ListedJob(JobDocument):
    """A job in a list, with its current activity. `status` says how far the job is, not what it waits for."""

    activity: Activity | None = Field(
        description="`waiting`: the job waits for an event from a person or a system. `running`: an attempt runs, "
        "or a provider or a child job works for it. `queued`: a step is ready. `sleeping`: the job waits for a time. "
        "Null: the job has finished."
    )
    waiting_for: str | None = Field(
        description="The thing that it waits for: `event:<name>`, `timer`, `retry`, `snooze`, `external:<provider>`, "
        "`child`, `slot` or `budget:<scope>:<name>`."
    )


class JobChanged(JobDocument):
    """A job after an action; `changed` is false when there was nothing to do."""

    changed: bool


class JobAccepted(JobDocument):
    """A job that is stored. `is_new` is false when an earlier request with the same key made it."""

    is_new: bool


class Accepted(Told):
    """A stored job of a batch."""

    job_id: UUID
    is_new: bool


class BatchAccepted(Told):
    """A result for each job of a batch, in order."""

    items: list[Accepted | Denial | Problem]
    accepted: int
    refused: int


class JobPage(Told):
    """Jobs, the newest first. A page with `next` may be short or empty: then continue with `next`."""

    items: list[ListedJob]
    next: str | None


# Jobs and events that were written together have the same time.
told_at = lru_cache(maxsize=256)(rfc3339)


def job_json(job: JobView, **more: Any) -> bytes:
    """Encode a job's document, with `more` fields, for frequent responses."""
    values = job_values(job)
    for name in _TIMES:
        if values[name] is not None:
            values[name] = told_at(values[name])
    values["job_id"] = str(job.id)
    return msgspec.json.encode(values | more)


def job_document(job: JobView) -> JobDocument:
    """Return a job's document."""
    return JobDocument.model_construct(**job_values(job))


def listed_job(job: JobView, doing: Doing | None) -> ListedJob:
    """Return the document of a job in a list."""
    return ListedJob.model_construct(**listed_values(job, doing))
