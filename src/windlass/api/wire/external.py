"""External work on the wire: webhooks of providers, callbacks, events for jobs, providers and budgets."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from windlass.api.wire.money import Money, MoneyTold
from windlass.api.wire.wire import Asked, LongText, Sought, Text, Time, Told, document_of
from windlass.core.plan import Plan
from windlass.core.states import JobState, StepState
from windlass.documents.external import budget_values, costs_values, provider_values
from windlass.engine.budgets import BudgetView
from windlass.views.costs import CostView
from windlass.views.providers import BreakerState, ProviderView

TOKEN_MAX = 200
COUNT_MAX = 2**62
EVENTS_PAGE_MAX = 200
ProviderEventStatus = Literal["WAITING", "DUE", "APPLIED", "NOTED", "LATE"]
CompleteStatus = JobState | Literal["job_failed", "noted", "already_advanced"]
BudgetScope = Literal["job", "recipe", "caller"]


class WebhookTaken(Told):
    """The result of a provider's webhook. It is stored in any case; sending it again changes nothing."""

    status: Literal["applied", "noted", "late", "kept", "replayed"] = Field(
        description="`applied`: it ended the step. `noted`: it told progress. `late`: the step had ended. `kept`: the "
        "work is not known yet, or the body could not be read. `replayed`: it came before."
    )


class ProviderEventDocument(Told):
    """A webhook that a provider sent."""

    id: str
    at: Time
    status: ProviderEventStatus
    external_id: str | None
    job_id: UUID | None


class ProviderEventList(Told):
    """Webhooks of a provider, the newest first."""

    items: list[ProviderEventDocument]


class ProviderEventsQuery(Sought):
    """Which webhooks to return."""

    status: ProviderEventStatus | None = None
    limit: int = Field(default=50, ge=1, le=EVENTS_PAGE_MAX)


class CostWish(Asked):
    """The cost of the work."""

    amount: Money = Decimal(0)
    tokens_in: int = Field(default=0, ge=0, le=COUNT_MAX)
    tokens_out: int = Field(default=0, ge=0, le=COUNT_MAX)
    seconds: float = Field(default=0.0, ge=0, le=1e12)


class CompleteRequest(Asked):
    """The result or the progress of work that an external service does."""

    token: str = Field(max_length=TOKEN_MAX, description="`ctx.token` of the attempt that handed the work over.")
    status: Literal["success", "failed", "progress"]
    stage: Text | None = Field(default=None, description="The step's name. If present, it must match the token.")
    result: Any = Field(default=None, description="With `success`: the step's output.")
    error_code: Text | None = Field(default=None, description="With `failed`: a stable word for programs.")
    error_message: LongText | None = Field(default=None, description="With `failed`: a sentence for people.")
    is_retryable: bool = Field(
        default=False, description="With `failed`: whether the step's retries are used. If false, the failure is final."
    )
    progress_pct: float | None = Field(default=None, ge=0, le=100)
    progress_message: LongText | None = None
    preview: Any = Field(default=None, description="With `progress`: a first or partial form of the result.")
    cost: CostWish | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> CompleteRequest:
        given = self.model_fields_set
        if self.status != "success" and "result" in given:
            raise ValueError("only a success has a result")
        if self.status != "failed" and given & {"error_code", "error_message", "is_retryable"}:
            raise ValueError("only a failure has an error")
        if self.status != "progress" and given & {"progress_pct", "progress_message", "preview"}:
            raise ValueError("progress_pct, progress_message and preview need the status progress")
        if self.status == "progress" and self.cost is not None:
            raise ValueError("a cost needs the status success or failed")
        if self.status == "progress" and not given & {"progress_pct", "progress_message", "preview"}:
            raise ValueError("the status progress needs progress_pct, progress_message or preview")
        return self


class CompleteDocument(Told):
    """The result of a callback."""

    status: CompleteStatus = Field(
        description="The job's status after it; `job_failed` when the step has failed for good; `noted` for progress; "
        "`already_advanced` when the attempt was over before: then nothing was changed."
    )
    job_status: JobState
    step: str
    step_status: StepState


class EventRequest(Asked):
    """An event for a job."""

    name: Text = Field(min_length=1, examples=["approved"])
    body: Any = Field(default={}, description="The output of the waiting step; any JSON.")
    id: Text | None = Field(
        default=None,
        min_length=1,
        description="The sender's id for the event. Usually the header Idempotency-Key has it.",
    )


class EventTaken(Told):
    """The result of sending an event."""

    status: Literal["delivered", "kept", "already"] = Field(
        description="`delivered`: a step waited for it. `kept`: none does yet. `already`: the id came before."
    )
    id: str


class HolderDocument(Told):
    """A step that holds a slot of the provider."""

    job_id: UUID
    step: str
    attempt: int
    since: Time


class WaiterDocument(Told):
    """The next step to get a slot."""

    job_id: UUID
    step: str
    since: Time


class ProviderDocument(Told):
    """A provider as all processes see it."""

    name: str
    concurrency: int
    rate: float = Field(description="Requests per second.")
    held: int
    waiting: int
    holders: list[HolderDocument] = Field(description="At most 100 steps.")
    first: WaiterDocument | None = Field(description="The step that is next.")
    breaker: BreakerState = Field(
        description="`closed`; `open`: no requests are sent; `half_open`: one request is a probe."
    )
    failures: int = Field(description="Failures in a row.")
    error: str | None = Field(description="The last failure.")
    paused_until: Time | None = Field(description="The end of the pause that the provider asked for.")
    free_at: Time | None = Field(description="The time of the next allowed request.")


class ProviderList(Told):
    """Providers by name."""

    items: list[ProviderDocument]


class BudgetRequest(Asked):
    """How much may be spent."""

    most: Money


class BudgetDocument(Told):
    """A budget. A step whose cost exceeds the remaining budget waits until it fits."""

    scope: BudgetScope
    name: str
    most: MoneyTold
    spent: MoneyTold
    reserved: MoneyTold = Field(description="The amount reserved for running attempts.")
    left: MoneyTold


class BudgetList(Told):
    """Budgets by scope and name."""

    items: list[BudgetDocument]


class CostDocument(Told):
    """The cost of an attempt."""

    no: int
    step: str
    attempt: int
    provider: str | None
    amount: MoneyTold
    tokens_in: int
    tokens_out: int
    seconds: float
    at: Time


class Costs(Told):
    """The cost of a job's attempts, and the job's budget if it has one."""

    total: MoneyTold
    tokens_in: int
    tokens_out: int
    seconds: float
    items: list[CostDocument]
    is_more: bool = Field(
        description="Whether there are more attempts than the list has. The sums include all attempts."
    )
    budget: BudgetDocument | None


def provider_document(view: ProviderView) -> ProviderDocument:
    """Return a provider's document."""
    return document_of(ProviderDocument, provider_values(view))


def budget_document(view: BudgetView) -> BudgetDocument:
    """Return a budget's document."""
    return BudgetDocument.model_construct(**budget_values(view))


def costs_document(found: Sequence[CostView], plan: Plan, budget: BudgetView | None) -> Costs:
    """Return the document of the cost of a job's attempts."""
    return document_of(Costs, costs_values(found, plan, budget))
