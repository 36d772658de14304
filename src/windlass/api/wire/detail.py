"""One step in full, and attempts, on the wire."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import Field

from windlass.api.wire.money import MoneyTold
from windlass.api.wire.step import NO_MAX, ReasonDocument, StepDocument, reason_document, step_document
from windlass.api.wire.wire import Sought, Time, Told
from windlass.core.external import WorkState
from windlass.core.plan import Plan
from windlass.documents.tracebacks import shown_error, shown_text
from windlass.views.attempts import ATTEMPTS_PAGE_MAX, AttemptView, Outcome
from windlass.views.step_detail import Awaited, InputsState, StepDetail
from windlass.views.work import WorkView


class AttemptsQuery(Sought):
    """Where to start."""

    after: int = Field(default=0, ge=0, le=NO_MAX, description="`next` of the last page.")
    limit: int = Field(default=ATTEMPTS_PAGE_MAX, ge=1, le=ATTEMPTS_PAGE_MAX)


class AttemptDocument(Told):
    """One attempt of a step."""

    no: int
    step: str
    index: int | None
    attempt: int
    started_at: Time
    finished_at: Time | None
    outcome: Outcome
    worker: UUID | None = Field(description="Null if no worker was needed, as for a child job or an event.")
    error: Any


class AttemptPage(Told):
    """Attempts in the order of their starts; `next` is set while the page is full."""

    items: list[AttemptDocument]
    next: int | None


class LogDocument(Told):
    """A line that an attempt logged."""

    at: str = Field(description="By the clock of the worker.")
    level: str
    text: str
    attempt: int


class StepWorkDocument(Told):
    """Work that a provider does, or did, for the step."""

    provider: str
    external_id: str | None
    state: WorkState
    status: str | None = Field(
        description="The provider's last `ProviderStatus`, or the code of the error with which it refused."
    )
    attempt: int
    polls: int
    next_poll_at: Time | None
    created_at: Time
    submitted_at: Time | None
    ended_at: Time | None


class StepCostDocument(Told):
    """The total cost of the step's attempts."""

    amount: MoneyTold
    tokens_in: int
    tokens_out: int
    seconds: float


class AwaitedDocument(Told):
    """The event that a step waits for, and how the recipe uses its body."""

    event: str
    match: dict[str, Any] = Field(
        description="Values that the body must contain. Another event is kept, and the step still waits."
    )
    keys: list[str] = Field(description="Keys of the body that the recipe's expressions read.")
    given_to: list[str] = Field(description="Steps that receive the whole body; `output` is the job's output.")
    is_condition: bool = Field(description="Whether a step runs only if the body itself is `true`.")


class StepDetailDocument(StepDocument):
    """A step with all its details."""

    needs: list[str]
    idempotency_key: str = Field(description="The same on every attempt: `ctx.key`.")
    attempts: list[AttemptDocument] = Field(description="The first 200; /jobs/{job_id}/attempts lists all.")
    logs: list[LogDocument] = Field(description="The newest 100 lines, or 16 KiB.")
    provider: StepWorkDocument | None
    why: ReasonDocument | None = Field(description="The wait of the step; null once the step is done.")
    cost: StepCostDocument | None
    inputs: Any = Field(description="The arguments of its handler; see `inputs_state`.")
    inputs_state: InputsState = Field(
        description="`resolved`; `template` while something that it needs is not there, or is kept as an artifact; "
        "`large`: over 64 KiB, and left out; `hidden`: made from an output that is quarantined."
    )
    awaited: AwaitedDocument | None = Field(description="For a step that waits for an event: the event and its use.")


def attempt_document(plan: Plan, one: AttemptView) -> AttemptDocument:
    """Return an attempt's document."""
    return AttemptDocument.model_construct(
        no=one.no,
        step=plan.nodes[one.node].name,
        index=one.index,
        attempt=one.attempt,
        started_at=one.started_at,
        finished_at=one.finished_at,
        outcome=one.outcome,
        worker=one.worker,
        error=shown_error(one.error),
    )


def detail_document(job_id: UUID, found: StepDetail) -> StepDetailDocument:
    """Return a step's document with all its details."""
    plan, costs = found.plan, found.costs
    return StepDetailDocument.model_construct(
        **dict(step_document(job_id, plan, found.step)),
        needs=list(plan.nodes[found.step.node].needs),
        idempotency_key=found.key,
        attempts=[attempt_document(plan, one) for one in found.attempts],
        logs=[
            LogDocument.model_construct(at=one.at, level=one.level, text=shown_text(one.text), attempt=one.attempt)
            for one in found.logs
        ],
        provider=None if found.work is None else _work(found.work),
        why=None if found.why is None else reason_document(found.why),
        cost=None
        if not costs
        else StepCostDocument.model_construct(
            amount=sum((one.amount for one in costs), Decimal(0)),
            tokens_in=sum(one.tokens_in for one in costs),
            tokens_out=sum(one.tokens_out for one in costs),
            seconds=sum(one.seconds for one in costs),
        ),
        inputs=found.inputs,
        inputs_state=found.inputs_state,
        awaited=None if found.awaited is None else _awaited(found.awaited),
    )


def _awaited(one: Awaited) -> AwaitedDocument:
    return AwaitedDocument.model_construct(
        event=one.event,
        match=one.match,
        keys=list(one.expected.keys),
        given_to=list(one.expected.given_to),
        is_condition=one.expected.is_condition,
    )


def _work(work: WorkView) -> StepWorkDocument:
    return StepWorkDocument.model_construct(
        provider=work.provider,
        external_id=work.external_id,
        state=WorkState(work.state),
        status=work.status,
        attempt=work.attempt,
        polls=work.polls,
        next_poll_at=work.due_at,
        created_at=work.created_at,
        submitted_at=work.submitted_at,
        ended_at=work.ended_at,
    )
