"""Work that is done elsewhere, on the wire: webhooks of providers, callbacks, events that jobs are sent, providers."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from windlass.api.wire.money import Money, MoneyTold
from windlass.api.wire.wire import Asked, LongText, Sought, Text, Time, Told
from windlass.core.plan import Plan
from windlass.engine.budgets import BudgetView
from windlass.views.costs import CostView
from windlass.views.providers import ProviderView

TOKEN_MAX = 200
COUNT_MAX = 2**62
EVENTS_PAGE_MAX = 200
COSTS_MAX = 1_000
HOLDERS_MAX = 100


class WebhookTaken(Told):
    """What became of a provider's webhook. It is stored in any case; sending it again changes nothing."""

    status: Literal["applied", "noted", "late", "kept", "replayed"] = Field(
        description="`applied`: it ended the step. `noted`: it told progress. `late`: the step had ended. `kept`: the "
        "work is not known yet, or the body could not be read. `replayed`: it came before."
    )


class ProviderEventDocument(Told):
    """A webhook that a provider sent."""

    id: str
    at: Time
    status: str = Field(description="`WAITING`, `DUE`, `APPLIED`, `NOTED` or `LATE`.")
    external_id: str | None
    job_id: UUID | None


class ProviderEventList(Told):
    """Webhooks of a provider, the newest first."""

    items: list[ProviderEventDocument]


class ProviderEventsQuery(Sought):
    """Which webhooks."""

    status: Literal["WAITING", "DUE", "APPLIED", "NOTED", "LATE"] | None = None
    limit: int = Field(default=50, ge=1, le=EVENTS_PAGE_MAX)


class CostWish(Asked):
    """What the work cost."""

    amount: Money = Decimal(0)
    tokens_in: int = Field(default=0, ge=0, le=COUNT_MAX)
    tokens_out: int = Field(default=0, ge=0, le=COUNT_MAX)
    seconds: float = Field(default=0.0, ge=0, le=1e12)


class CompleteRequest(Asked):
    """How work that was done elsewhere stands."""

    token: str = Field(max_length=TOKEN_MAX, description="`ctx.token` of the attempt that handed the work over.")
    status: Literal["success", "failed", "progress"]
    stage: Text | None = Field(default=None, description="The step's name; if given, it must be the token's.")
    result: Any = Field(default=None, description="With `success`: the step's output.")
    error_code: Text | None = Field(default=None, description="With `failed`: a stable word for programs.")
    error_message: LongText | None = Field(default=None, description="With `failed`: a sentence for people.")
    is_retryable: bool = Field(
        default=False, description="With `failed`: whether the step's own retries are to be used; else it is final."
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
            raise ValueError("only progress is told in steps")
        if self.status == "progress" and self.cost is not None:
            raise ValueError("a cost is told with the end")
        if self.status == "progress" and not given & {"progress_pct", "progress_message", "preview"}:
            raise ValueError("progress says something: progress_pct, progress_message or preview")
        return self


class CompleteDocument(Told):
    """What became of a callback."""

    status: str = Field(
        description="The job's status after it; `job_failed` when the step has failed for good; `noted` for progress; "
        "`already_advanced` when the attempt was over before: then nothing was changed."
    )
    job_status: str
    step: str
    step_status: str


class EventRequest(Asked):
    """An event for a job."""

    name: Text = Field(min_length=1, examples=["approved"])
    body: Any = Field(default={}, description="What the waiting step gets as its output; any JSON.")
    id: Text | None = Field(
        default=None, min_length=1, description="The sender's own; the header Idempotency-Key is the usual place."
    )


class EventTaken(Told):
    """What became of an event."""

    status: Literal["delivered", "kept", "already"] = Field(
        description="`delivered`: a step waited for it. `kept`: none does yet. `already`: the id came before."
    )
    id: str


class HolderDocument(Told):
    """A step that has one of a provider's places."""

    job_id: UUID
    step: str
    attempt: int
    since: Time


class WaiterDocument(Told):
    """The step that is next."""

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
    holders: list[HolderDocument] = Field(description="At most 100 of them.")
    first: WaiterDocument | None = Field(description="Who is next.")
    breaker: str = Field(description="`closed`; `open`: nothing is asked; `half-open`: one request tries it.")
    failures: int = Field(description="In a row.")
    error: str | None = Field(description="The last failure.")
    paused_until: Time | None = Field(description="It said that it is busy.")
    free_at: Time | None = Field(description="When the next request may be made.")


class ProviderList(Told):
    """Providers by name."""

    items: list[ProviderDocument]


class BudgetRequest(Asked):
    """How much may be spent."""

    most: Money


class BudgetDocument(Told):
    """A budget. A step whose cost would not fit into what is left waits until it does."""

    scope: Literal["job", "recipe", "caller"]
    name: str
    most: MoneyTold
    spent: MoneyTold
    reserved: MoneyTold = Field(description="By attempts that are under way.")
    left: MoneyTold


class BudgetList(Told):
    """Budgets by scope and name."""

    items: list[BudgetDocument]


class CostDocument(Told):
    """What an attempt cost."""

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
    """What a job's attempts cost, and the budget of the job if it has one."""

    total: MoneyTold
    tokens_in: int
    tokens_out: int
    seconds: float
    items: list[CostDocument]
    is_more: bool = Field(description="Whether there are more attempts than are listed; the sums are of all.")
    budget: BudgetDocument | None


def provider_document(view: ProviderView) -> ProviderDocument:
    """A provider's document."""
    first = view.first
    return ProviderDocument.model_construct(
        name=view.name,
        concurrency=view.concurrency,
        rate=view.rate,
        held=view.held,
        waiting=view.waiting,
        holders=[
            HolderDocument.model_construct(job_id=one.job_id, step=one.step, attempt=one.attempt, since=one.since)
            for one in view.holders[:HOLDERS_MAX]
        ],
        first=None
        if first is None
        else WaiterDocument.model_construct(job_id=first.job_id, step=first.step, since=first.since),
        breaker=view.breaker,
        failures=view.failures,
        error=view.error,
        paused_until=view.paused_until,
        free_at=view.free_at,
    )


def budget_document(view: BudgetView) -> BudgetDocument:
    """A budget's document."""
    return BudgetDocument.model_construct(
        scope=view.scope,
        name=view.name,
        most=view.most,
        spent=view.spent,
        reserved=view.reserved,
        left=max(view.most - view.spent - view.reserved, Decimal(0)),
    )


def costs_document(found: Sequence[CostView], plan: Plan, budget: BudgetView | None) -> Costs:
    """The document of all that a job's attempts cost."""
    return Costs.model_construct(
        total=sum((one.amount for one in found), Decimal(0)),
        tokens_in=sum(one.tokens_in for one in found),
        tokens_out=sum(one.tokens_out for one in found),
        seconds=sum(one.seconds for one in found),
        items=[_cost(one, plan) for one in found[:COSTS_MAX]],
        is_more=len(found) > COSTS_MAX,
        budget=None if budget is None else budget_document(budget),
    )


def _cost(one: CostView, plan: Plan) -> CostDocument:
    name = plan.nodes[one.node].name
    return CostDocument.model_construct(
        no=one.no,
        step=name if one.index is None else f"{name}[{one.index}]",
        attempt=one.attempt,
        provider=one.provider,
        amount=one.amount,
        tokens_in=one.tokens_in,
        tokens_out=one.tokens_out,
        seconds=one.seconds,
        at=one.at,
    )
