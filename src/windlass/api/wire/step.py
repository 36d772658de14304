"""Steps, the graph of a job, its events and reasons on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from windlass.api.tracebacks import shown_error, shown_payload
from windlass.api.wire.wire import Sought, Text, Time, Told
from windlass.core.plan import Plan
from windlass.core.states import StepState
from windlass.views.explain import Reason
from windlass.views.job_graph import STEPS_PAGE_MAX, GraphView, NodeView, Wait
from windlass.views.read import EventView, JobView, StepView

EVENTS_PAGE_MAX = 1_000
NEWEST_EVENTS = 200
NO_MAX = 2**31 - 1


def _states(names: list[str]) -> list[str]:
    found = [name.strip().upper() for text in names for name in text.split(",")]
    for name in found:
        if name not in StepState.__members__:
            raise ValueError(f"there is no status {name[:50]!r}; there are {', '.join(StepState)}")
    return found


class GraphQuery(Sought):
    """What to show beside the graph."""

    results: bool = Field(default=False, description="Also what each finished step returned.")
    children: Literal["states"] | None = Field(
        default=None, description="`states`: also where each child of each fan-out stands, in a compact form."
    )


class StepsQuery(Sought):
    """Which steps, and from where on."""

    step: Text | None = Field(default=None, description="Steps of this name: of a fan-out, all its children.")
    status: Annotated[list[str], Field(max_length=64), AfterValidator(_states)] = Field(default=[])
    after: int = Field(default=-1, ge=-1, le=NO_MAX, description="`next` of the page before.")
    limit: int = Field(default=100, ge=1, le=STEPS_PAGE_MAX)


class EventsQuery(Sought):
    """From where on, and which way."""

    after: int = Field(default=0, ge=0, le=NO_MAX, description="The last `seq` that is known.")
    before: int | None = Field(default=None, ge=0, le=NO_MAX, description="Only those with a lower `seq`.")
    order: Literal["asc", "desc"] = Field(default="asc", description="`desc`: the newest first.")
    limit: int | None = Field(
        default=None, ge=1, le=EVENTS_PAGE_MAX, description="1,000, and the newest first 200, unless it is given."
    )


class WhyQuery(Sought):
    """Of which step."""

    step: Text | None = None


class FanDocument(Told):
    """How far a fan-out is."""

    total: int | None
    made: int
    by_status: dict[str, int]


class StepDocument(Told):
    """A step of a job."""

    no: int
    step: str
    index: int | None
    parent: int | None = Field(description="Of a fan-out's child, the fan-out's number.")
    kind: str
    run: str
    queue: str
    status: str
    attempt: int
    failures: int
    losses: int
    worker: UUID | None
    waiting_for: str | None
    wake_at: Time | None
    progress: Any
    error: Any
    started_at: Time | None
    finished_at: Time | None
    links: dict[str, str]


class StepPage(Told):
    """Steps in the order of their numbers."""

    items: list[StepDocument]
    next: int | None


class NodeDocument(Told):
    """A node of the graph and how it stands."""

    no: int
    step: str
    kind: str
    run: str
    queue: str
    needs: list[str]
    status: str
    complete: bool
    running: bool
    failed: bool
    attempt: int
    failures: int
    losses: int
    started_at: Time | None
    finished_at: Time | None
    seconds: float | None
    waiting_for: str | None
    wake_at: Time | None
    progress: Any
    error: Any
    fan: FanDocument | None


class EdgeDocument(Told):
    """`target` needs `source`."""

    source: str
    target: str


class WaitDocument(Told):
    """What a step waits for."""

    step: str
    kind: str
    provider: str | None
    external_id: str | None
    until: Time | None
    reason: str


class ChildrenDocument(Told):
    """The children of a fan-out in their order, the first one's index being 0: their numbers and where they stand."""

    no: list[int]
    status: list[int] = Field(description="For each, a place in `statuses`.")


class GraphDocument(Told):
    """A job's graph."""

    job_id: UUID
    seq: int = Field(description="The number of the job's last event when it was read; later ones may show already.")
    status: str
    workflow_status: str | None
    is_paused: bool
    nodes: list[NodeDocument]
    edges: list[EdgeDocument]
    counts: dict[str, int]
    incoming: dict[str, int] = Field(description="For each step, how many of those that it needs are not done.")
    ready: list[str]
    pending_operations: int
    completed_operations: int
    waiting_for: list[WaitDocument]
    results: dict[str, Any] | None = Field(
        description='`{"steps": {name: {"outputs": …}}}`; a large output is `{"$artifact": …}`, see /steps/{no}/output.'
    )
    statuses: list[str] | None = Field(
        description="What the numbers in `children` mean: a status, of a step that waits with what for: `PARKED:retry`."
    )
    children: dict[str, ChildrenDocument] | None = Field(
        description="By the number of their fan-out; with `children=states`."
    )


class EventDocument(Told):
    """Something that happened to a job."""

    job_id: UUID
    seq: int
    at: Time
    type: str
    source: str
    no: int | None
    attempt: int | None
    payload: Any
    correlation_id: str | None


class EventPage(Told):
    """Events in order. `next` is there while the page is full: the next one's `after`, or with `desc` its `before`."""

    items: list[EventDocument]
    next: int | None


class ReasonDocument(Told):
    """Why a step does not run, or how it ended."""

    step: str
    status: str
    because: str
    detail: dict[str, Any]


class Reasons(Told):
    """A reason for each step that is not done."""

    items: list[ReasonDocument]
    is_more: bool


def step_document(job_id: UUID, plan: Plan, step: StepView) -> StepDocument:
    """A step's document."""
    node = plan.nodes[step.node]
    return StepDocument.model_construct(
        no=step.no,
        step=node.name,
        index=step.index,
        # A node's step has its node's number.
        parent=None if step.index is None else step.node,
        kind=str(node.kind),
        run=node.run,
        queue=step.queue,
        status=str(step.state),
        attempt=step.attempt,
        failures=step.failures,
        losses=step.losses,
        worker=step.worker,
        waiting_for=step.waiting_for,
        wake_at=step.wake_at,
        progress=step.progress,
        error=shown_error(step.error),
        started_at=step.started_at,
        finished_at=step.finished_at,
        links={"output": f"/jobs/{job_id}/steps/{step.no}/output"},
    )


def graph_document(job: JobView, view: GraphView) -> GraphDocument:
    """A graph's document."""
    children = view.children
    return GraphDocument.model_construct(
        job_id=job.id,
        seq=job.event_seq,
        status=str(job.state),
        workflow_status=None if view.workflow is None else str(view.workflow),
        is_paused=job.is_paused,
        nodes=[_node(node) for node in view.nodes],
        edges=[EdgeDocument(source=source, target=target) for source, target in view.edges],
        counts=view.counts,
        incoming=view.incoming,
        ready=view.ready,
        pending_operations=view.pending,
        completed_operations=view.completed,
        waiting_for=[_wait(wait) for wait in view.waits],
        results=view.results,
        statuses=None if children is None else children.statuses,
        children=None
        if children is None
        else {
            str(fan): ChildrenDocument.model_construct(no=numbers, status=codes)
            for fan, (numbers, codes) in children.by_fan.items()
        },
    )


def _node(node: NodeView) -> NodeDocument:
    step, fan = node.step, node.fan
    seconds = None
    if step.started_at is not None and step.finished_at is not None:
        seconds = (step.finished_at - step.started_at).total_seconds()
    return NodeDocument.model_construct(
        no=step.no,
        step=node.name,
        kind=node.kind,
        run=node.run,
        queue=step.queue,
        needs=list(node.needs),
        status=str(step.state),
        complete=step.state in (StepState.COMPLETED, StepState.SKIPPED),
        running=step.state is StepState.RUNNING,
        failed=step.state is StepState.FAILED,
        attempt=step.attempt,
        failures=step.failures,
        losses=step.losses,
        started_at=step.started_at,
        finished_at=step.finished_at,
        seconds=seconds,
        waiting_for=step.waiting_for,
        wake_at=step.wake_at,
        progress=step.progress,
        error=shown_error(step.error),
        fan=None if fan is None else FanDocument(total=fan.total, made=fan.made, by_status=fan.by_state),
    )


def _wait(wait: Wait) -> WaitDocument:
    return WaitDocument.model_construct(
        step=wait.step,
        kind=wait.kind,
        provider=wait.provider,
        external_id=wait.external_id,
        until=wait.until,
        reason=wait.reason,
    )


def event_document(job_id: UUID, event: EventView) -> EventDocument:
    """An event's document."""
    return EventDocument.model_construct(
        job_id=job_id,
        seq=event.seq,
        at=event.at,
        type=event.type,
        source=event.source,
        no=event.no,
        attempt=event.attempt,
        payload=shown_payload(event.payload),
        correlation_id=event.correlation_id,
    )


def reason_document(reason: Reason) -> ReasonDocument:
    """A reason's document."""
    return ReasonDocument(
        step=reason.step, status=str(reason.state), because=reason.because, detail=shown_payload(reason.detail)
    )
