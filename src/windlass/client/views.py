"""The documents of the server as Python values. The client and the handles of the SDK return them.

Fields that a server of another release adds are ignored. Fields that it lacks have their defaults.
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

    job_id: UUID
    status: JobState
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
    effects: str = "none"
    undo_job_id: UUID | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    updated_at: datetime | None = None
    stuck_for: int | None = None
    deadline_at: datetime | None = None
    expires_at: datetime | None = None
    deleted_at: datetime | None = None
    is_new: bool = False
    changed: bool = True

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.status in JOB_TERMINAL


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a job. A stream that resumes from its `id` continues after it.

    An event of a stream has the job's `status` at that time. An event of a page has its `source` and its cause.
    """

    type: str
    job_id: UUID | None = None
    seq: int = 0
    at: datetime | None = None
    id: str = ""
    status: JobState | None = None
    recipe: str | None = None
    step: str | None = None
    no: int | None = None
    attempt: int | None = None
    source: str = ""
    payload: Any = None
    # True if the payload was too large for the stream; a page of events has it.
    has_payload: bool = False
    progress_pct: float | None = None
    progress_message: str | None = None
    labels: dict[str, str] | None = None
    correlation_id: str | None = None
    idempotency_key: str | None = None


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A step, its status, and a sentence that says what it waits for or why it ended."""

    step: str
    status: str
    because: str
    detail: dict[str, Any] = {}


class JobDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict of the policy that is not a plain yes. `no` is the step; None is the whole job."""

    seq: int
    edge: str
    no: int | None
    attempt: int | None
    decision: str
    rule: str
    policy: int | None
    subject: str | None
    reason: str
    constraints: dict[str, Any]
    enforced: dict[str, str]
    kernel: str | None
    at: datetime


class JobDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy said about a job: the newest verdict under which it may go on, and all others."""

    policy: int | None
    rule: str | None
    items: list[JobDecision]


class StepDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a job."""

    no: int
    step: str
    status: str
    index: int | None = None
    kind: str = "task"
    run: str = ""
    queue: str = ""
    parent: int | None = None
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
    """A key without its secret. Only the answer that creates a key has the whole key, in `text`."""

    id: str
    caller: str
    caller_type: str = "user"
    tier: str | None = None
    scopes: list[str] = []
    roles: list[str] = []
    name: str = ""
    created_at: datetime | None = None
    created_by: str = ""
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    is_live: bool = True


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A step that holds one of a provider's slots, or is the next to get a slot."""

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
    """A budget: its limit, the amount spent, the amount reserved by running attempts, and the rest."""

    scope: str
    name: str
    most: Decimal
    spent: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)
    left: Decimal = Decimal(0)


class CostView(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of an attempt."""

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
    """The costs of a job's attempts, in total and each, and the job's budget if it has one."""

    total: Decimal
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    items: list[CostView] = []
    is_more: bool = False
    budget: BudgetView | None = None


class CompletedView(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a callback: the job's status after it, `job_failed`, `noted`, or `already_advanced`."""

    status: str
    job_status: str = ""
    step: str = ""
    step_status: str = ""

    @property
    def is_heard(self) -> bool:
        """Whether the callback changed the job."""
        return self.status != "already_advanced"


class RerunView(msgspec.Struct, frozen=True, kw_only=True):
    """A preview of a job that runs again: the steps that run, the kept steps, and the kept steps that are stale."""

    run_again: list[str]
    kept: list[str] = []
    stale: list[str] = []
    inputs_changed: list[str] = []
    kept_children: dict[str, int] = {}


class DeadLetterView(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one kind of failure; `message` comes from the newest job."""

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


class VoteView(msgspec.Struct, frozen=True, kw_only=True):
    """A vote that counts."""

    caller: str
    choice: str
    reason: str = ""
    note: str = ""
    at: datetime | None = None


class ApprovalView(msgspec.Struct, frozen=True, kw_only=True):
    """An approval: what exactly will run, who may decide, and the votes so far."""

    id: UUID
    state: str
    job_id: UUID
    job_status: str
    recipe: str
    edge: str
    plan: str
    subject: str
    requester: str
    need: int
    no: int | None = None
    step: str | None = None
    index: int | None = None
    question: str = ""
    show: Any = None
    inputs: Any = None
    labels: dict[str, str] = {}
    policy: int | None = None
    rule: str | None = None
    reason: str = ""
    who: list[dict[str, Any]] = []
    on_reject: str = "fail"
    votes: list[VoteView] = []
    may_decide: bool = False
    why_not: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    escalate_at: datetime | None = None
    escalated_at: datetime | None = None
    decided_at: datetime | None = None
    left_s: float = 0.0


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """A job that an action changed, and the new job if the action made it."""

    job_id: UUID
    new_job_id: UUID | None = None


class BulkRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A job that refused an action, and the code of the reason."""

    job_id: UUID
    code: str


class BulkView(msgspec.Struct, frozen=True, kw_only=True):
    """The result, or the preview, of an action on many jobs."""

    action: str
    dry_run: bool
    matched: int
    is_more: bool = False
    done: list[BulkItem] = []
    refused: list[BulkRefusal] = []


def failure_of(view: JobView) -> JobFailed:
    """Return the error for a job that did not complete."""
    kind = JobCancelled if view.status is JobState.CANCELLED else JobFailed
    return kind(view.job_id, view.status, view.failed_step, dict(view.error or {}))


class PolicyTextView(msgspec.Struct, frozen=True, kw_only=True):
    """A policy document: its name and its YAML text."""

    name: str
    text: str


class PolicyVersionView(msgspec.Struct, frozen=True, kw_only=True):
    """A published version of the policy. Lists leave out the texts."""

    version: int
    hash: str = ""
    documents: list[str] = []
    published_by: str = ""
    published_at: datetime | None = None
    note: str | None = None
    signature: str | None = None
    rollback_of: int | None = None
    texts: list[PolicyTextView] = []


class PublishedView(PolicyVersionView, frozen=True, kw_only=True):
    """The version in force after a publish. `is_new` is false if it means the same as the version before."""

    is_new: bool = True
    before: int = 0
    floor: int = 0
