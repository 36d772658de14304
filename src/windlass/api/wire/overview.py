"""The overview, dead letters and recent inputs on the wire."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from windlass.api.wire.wire import Asked, LongText, Time, Told
from windlass.documents.again import dead_letter_values
from windlass.engine.bulk import BULK_MAX
from windlass.views import overview as engine
from windlass.views.dead_letters import DeadLetters


class AttentionDocument(Told):
    """A condition that may need a person."""

    kind: engine.AttentionKind = Field(
        description="`missing_handler`: queued steps need a handler that no live worker has; `detail` names the worker "
        "that had it last, and until when."
    )
    title: str
    detail: str
    count: int
    link: str = Field(description="A page of the console below /console, with the filter applied.")


class ThroughputDocument(Told):
    """Finished jobs per minute, the oldest minute first; the last minute is not over."""

    minutes: list[Time]
    completed: list[int]
    failed: list[int] = Field(description="Jobs that ended neither as completed nor as cancelled.")


class QueueDocument(Told):
    """A queue that holds steps, or that a worker serves."""

    queue: str
    ready: int
    running: int
    oldest_s: float = Field(description="The age of the oldest job with a ready step.")
    workers: int


class RecipeRate(Told):
    """How a recipe's jobs ended in the last hour, and the duration of completed jobs, to within 5 %."""

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
    """What to look at first. A caller that is no admin sees only its own jobs, and no queues."""

    as_of: Time
    attention: list[AttentionDocument]
    throughput: ThroughputDocument
    queues: list[QueueDocument]
    recipes: list[RecipeRate]
    totals: TotalsDocument
    is_capped: bool = Field(description="Whether a number is a lower bound.")


class DeadLetterDocument(Told):
    """Failed jobs of one kind that were not run again, discarded or deleted."""

    fingerprint: str
    code: str
    message: str = Field(description="The message of the newest job.")
    recipe: str
    step: str | None
    count: int
    first_at: Time
    last_at: Time
    versions: list[int]
    example_job: UUID
    job_ids: list[UUID] = Field(description="The newest 20.")


class DeadLetterList(Told):
    """Kinds of failures, the most recent failure first."""

    items: list[DeadLetterDocument]
    looked_at: int = Field(description="The number of failed jobs that were read.")
    is_capped: bool = Field(description="Whether there may be older dead letters.")


class DiscardRequest(Asked):
    """Discards the dead letters of a kind; the jobs stay as they are."""

    dry_run: bool = True
    expect: int | None = Field(default=None, ge=0, le=2**31, description="The expected number of jobs.")
    reason: LongText = ""


class RedriveRequest(DiscardRequest):
    """Runs the jobs of a kind again."""

    start: Literal["failed", "first"] = Field(
        default="failed", description="From where they failed, or from their first step."
    )
    limit: int = Field(
        default=BULK_MAX, ge=1, le=BULK_MAX, description="The maximum number of jobs. Repeat the request for the rest."
    )


class RecentInput(Told):
    """The inputs of a job."""

    job_id: UUID
    at: Time
    inputs: Any


class RecentInputs(Told):
    """The newest inputs first, without duplicates."""

    items: list[RecentInput]


def overview_document(look: engine.Overview) -> OverviewDocument:
    """Return the overview's document."""
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
    """Return the document of one kind of failure."""
    return DeadLetterDocument.model_construct(**dead_letter_values(kind))


def _values(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in type(one).__slots__}
