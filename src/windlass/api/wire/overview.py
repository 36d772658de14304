"""The overview, dead letters and recent inputs on the wire."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from windlass.api.wire.wire import Asked, LongText, Time, Told
from windlass.engine.bulk import BULK_MAX
from windlass.views import overview as engine
from windlass.views.dead_letters import IDS_SHOWN_MAX, DeadLetters


class AttentionDocument(Told):
    """Something that may need a person."""

    kind: Literal[
        "failing_recipe", "waiting_person", "budget_short", "dead_letters", "no_workers", "missing_handler",
        "lost_worker", "breaker_open", "old_queue"
    ] = Field(
        description="`missing_handler`: queued steps need a handler that no live worker has; `detail` names the worker "
        "that had it last, and until when."
    )  # fmt: skip
    title: str
    detail: str
    count: int
    link: str = Field(description="A page of the console, below /console, with the filter applied.")


class ThroughputDocument(Told):
    """Jobs that ended, by the minute, the oldest first; the last minute is not over."""

    minutes: list[Time]
    completed: list[int]
    failed: list[int] = Field(description="Ended in another way than completed or cancelled.")


class QueueDocument(Told):
    """A queue that holds something, or that somebody serves."""

    queue: str
    ready: int
    running: int
    oldest_s: float = Field(description="How long ago the oldest job among the ready ones was made.")
    workers: int


class RecipeRate(Told):
    """How a recipe's jobs ended in the last hour; how long those took that completed, to within 5 %."""

    recipe: str
    completed: int
    failed: int
    p50_s: float | None
    p95_s: float | None


class TotalsDocument(Told):
    """Open jobs by `activity`, as `GET /jobs?activity=…` lists them."""

    open: int
    running: int
    queued: int
    waiting: int
    sleeping: int
    paused: int


class OverviewDocument(Told):
    """What to look at first. Of a caller who is no admin: its own jobs, and no queues."""

    as_of: Time
    attention: list[AttentionDocument]
    throughput: ThroughputDocument
    queues: list[QueueDocument]
    recipes: list[RecipeRate]
    totals: TotalsDocument
    is_capped: bool = Field(description="Whether something was counted only in part.")


class DeadLetterDocument(Told):
    """Failed jobs of one kind that nobody ran again, discarded or deleted."""

    fingerprint: str
    code: str
    message: str = Field(description="Of the newest.")
    recipe: str
    step: str | None
    count: int
    first_at: Time
    last_at: Time
    versions: list[int]
    example_job: UUID
    job_ids: list[UUID] = Field(description="The newest 20.")


class DeadLetterList(Told):
    """Kinds of failures, the one that happened last first."""

    items: list[DeadLetterDocument]
    looked_at: int = Field(description="How many failed jobs were looked at.")
    is_capped: bool = Field(description="Whether there may be older ones.")


class DiscardRequest(Asked):
    """Leave the jobs of a kind as they are."""

    dry_run: bool = True
    expect: int | None = Field(default=None, ge=0, le=2**31, description="How many there must be.")
    reason: LongText = ""


class RedriveRequest(DiscardRequest):
    """Run the jobs of a kind again."""

    start: Literal["failed", "first"] = Field(
        default="failed", description="From where they failed, or from their first step."
    )
    limit: int = Field(default=BULK_MAX, ge=1, le=BULK_MAX, description="How many at most; ask again for the rest.")


class RecentInput(Told):
    """What a job was given."""

    job_id: UUID
    at: Time
    inputs: Any


class RecentInputs(Told):
    """The newest first, each once."""

    items: list[RecentInput]


def overview_document(look: engine.Overview) -> OverviewDocument:
    """The overview's document."""
    return OverviewDocument(
        as_of=look.as_of,
        attention=[AttentionDocument.model_construct(**_values(one)) for one in look.attention],
        throughput=ThroughputDocument(minutes=look.minutes, completed=look.completed, failed=look.failed),
        queues=[QueueDocument(**_values(one)) for one in look.queues],
        recipes=[RecipeRate(**_values(one)) for one in look.recipes],
        totals=TotalsDocument(**look.totals),
        is_capped=look.is_capped,
    )


def dead_letter_document(kind: DeadLetters) -> DeadLetterDocument:
    """The document of one kind."""
    return DeadLetterDocument(
        fingerprint=kind.fingerprint,
        code=kind.code,
        message=kind.message,
        recipe=kind.recipe,
        step=kind.step,
        count=len(kind.job_ids),
        first_at=kind.first_at,
        last_at=kind.last_at,
        versions=list(kind.versions),
        example_job=kind.job_ids[0],
        job_ids=list(kind.job_ids[:IDS_SHOWN_MAX]),
    )


def _values(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in type(one).__slots__}
