"""What the client gives back. The server says `job_id` and `status`; Python says `id` and `state`, as everywhere here.

Fields that a server of another release adds are left out; those that it lacks have their defaults.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.states import JOB_TERMINAL, JobState
from windlass.pure.job_failed import JobCancelled, JobFailed


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job, without its payloads."""

    id: UUID = msgspec.field(name="job_id")
    state: JobState = msgspec.field(name="status")
    recipe: str
    created_at: datetime
    recipe_version: int | None = None
    plan: str = ""
    is_paused: bool = False
    caller: str = ""
    priority: int = 0
    labels: dict[str, str] = {}
    idempotency_key: str | None = None
    correlation_id: str | None = None
    progress_pct: float | None = None
    progress_message: str | None = None
    steps_total: int = 0
    steps_open: int = 0
    steps_failed: int = 0
    failed_step: str | None = None
    error: dict[str, Any] | None = None
    parent_job: UUID | None = None
    retry_of: UUID | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    updated_at: datetime | None = None
    deadline_at: datetime | None = None
    expires_at: datetime | None = None
    deleted_at: datetime | None = None
    is_new: bool = False
    changed: bool = True

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.state in JOB_TERMINAL


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a job. `id` is where a stream goes on after it.

    An event of a stream has the job's `state` as of then; one of a page has `source` and what it was caused by.
    """

    type: str
    job_id: UUID | None = None
    seq: int = 0
    at: datetime | None = None
    id: str = ""
    state: JobState | None = msgspec.field(name="status", default=None)
    recipe: str | None = None
    step: str | None = None
    no: int | None = None
    attempt: int | None = None
    source: str = ""
    payload: Any = None
    # The payload was too big for a stream; a page of events has it.
    has_payload: bool = False
    progress_pct: float | None = None
    progress_message: str | None = None
    labels: dict[str, str] | None = None
    correlation_id: str | None = None
    idempotency_key: str | None = None


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A step, its state, and in a sentence what it waits for or why it ended so."""

    step: str
    state: str = msgspec.field(name="status")
    because: str
    detail: dict[str, Any] = {}


class StepDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a job."""

    no: int
    step: str
    state: str = msgspec.field(name="status")
    index: int | None = None
    kind: str = "task"
    run: str = ""
    queue: str = ""
    needs_unmet: int = 0
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    worker: UUID | None = None
    waiting_for: str | None = None
    wake_at: datetime | None = None
    progress: Any = None
    error: dict[str, Any] | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class RecipeView(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe and its newest version."""

    name: str
    version: int | None = None
    plan: str = ""
    created_at: datetime | None = None
    description: str = ""


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """A key, without what makes it one. `text` is the whole key, once, in the answer that made it."""

    id: str
    caller: str
    caller_type: str = "user"
    tier: str | None = None
    scopes: list[str] = []
    name: str = ""
    created_at: datetime | None = None
    created_by: str = ""
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    is_live: bool = True


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A step that has one of a provider's places, or is the next to have one."""

    job_id: UUID
    step: str
    attempt: int = 0
    since: datetime | None = None


class ProviderView(msgspec.Struct, frozen=True, kw_only=True):
    """A provider as all processes see it."""

    name: str
    concurrency: int
    rate: float
    held: int = 0
    waiting: int = 0
    holders: list[Holder] = []
    first: Holder | None = None
    breaker: str = "closed"
    failures: int = 0
    error: str | None = None
    paused_until: datetime | None = None
    free_at: datetime | None = None


class BudgetView(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be spent, was spent, is reserved by attempts under way, and is left."""

    scope: str
    name: str
    most: Decimal
    spent: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)
    left: Decimal = Decimal(0)


class CostView(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt cost."""

    no: int
    step: str
    attempt: int
    amount: Decimal
    provider: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    at: datetime | None = None


class CostsView(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's attempts cost, in all and each, and the job's own budget if it has one."""

    total: Decimal
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    items: list[CostView] = []
    is_more: bool = False
    budget: BudgetView | None = None


class CompletedView(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a callback: the job's status after it, `job_failed`, `noted`, or `already_advanced`."""

    status: str
    job_status: str = ""
    step: str = ""
    step_status: str = ""

    @property
    def is_heard(self) -> bool:
        """Whether it changed anything."""
        return self.status != "already_advanced"


class RerunView(msgspec.Struct, frozen=True, kw_only=True):
    """What a job that runs again would do: which steps run, which are kept, and which of those are stale."""

    run_again: list[str]
    kept: list[str] = []
    stale: list[str] = []
    inputs_changed: list[str] = []
    kept_children: dict[str, int] = {}


class DeadLetterView(msgspec.Struct, frozen=True, kw_only=True):
    """Failed jobs of one kind that nobody has dealt with; `message` is the newest one's."""

    fingerprint: str
    code: str
    message: str
    recipe: str
    count: int
    first_at: datetime
    last_at: datetime
    step: str | None = None
    versions: list[int] = []
    example_job: UUID | None = None
    job_ids: list[UUID] = []


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was acted on, and the new one if one was made."""

    job_id: UUID
    new_job_id: UUID | None = None


class BulkRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A job that could not be acted on, and the code of the reason."""

    job_id: UUID
    code: str


class BulkView(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to many jobs, or would be."""

    action: str
    dry_run: bool
    matched: int
    is_more: bool = False
    done: list[BulkItem] = []
    refused: list[BulkRefusal] = []


def failure_of(view: JobView) -> JobFailed:
    """The error that stands for a job which ended badly."""
    kind = JobCancelled if view.state is JobState.CANCELLED else JobFailed
    return kind(view.id, view.state, view.failed_step, dict(view.error or {}))
