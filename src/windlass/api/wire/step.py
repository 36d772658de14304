"""Steps, the graph of a job, its events and reasons on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from windlass.api.wire.wire import Sought, Text, Time, Told, WaitingFor, document_of
from windlass.core.event import EventType
from windlass.core.hold import HoldName
from windlass.core.plan import NodeKind, Plan
from windlass.core.states import JobState, StepState
from windlass.core.wait import WaitKind
from windlass.documents.step import event_values, graph_values, reason_values, step_values
from windlass.pure.workflow import WorkflowStatus
from windlass.views.explain import Reason
from windlass.views.job_graph import STEPS_PAGE_MAX, GraphView
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
    """What to show with the graph."""

    results: bool = Field(default=False, description="Include the outputs of finished steps.")
    children: Literal["states"] | None = Field(
        default=None, description="`states`: include the status of each child of each fan-out, in a compact form."
    )


class StepsQuery(Sought):
    """Which steps to return, and where to start."""

    step: Text | None = Field(default=None, description="Steps of this name. For a fan-out: all its children.")
    status: Annotated[list[str], Field(max_length=64), AfterValidator(_states)] = Field(default=[])
    after: int = Field(default=-1, ge=-1, le=NO_MAX, description="`next` of the last page.")
    limit: int = Field(default=100, ge=1, le=STEPS_PAGE_MAX)


class EventsQuery(Sought):
    """Where to start, and in which direction."""

    after: int = Field(default=0, ge=0, le=NO_MAX, description="The last known `seq`.")
    before: int | None = Field(default=None, ge=0, le=NO_MAX, description="Only events with a lower `seq`.")
    order: Literal["asc", "desc"] = Field(default="asc", description="`desc`: the newest first.")
    limit: int | None = Field(default=None, ge=1, le=EVENTS_PAGE_MAX, description="Default: 1,000; with `desc` 200.")


class WhyQuery(Sought):
    """Which step to explain."""

    step: Text | None = None


class FanDocument(Told):
    """The progress of a fan-out."""

    total: int | None
    made: int
    by_status: dict[StepState, int]


class StepDocument(Told):
    """A step of a job."""

    no: int
    step: str
    index: int | None
    parent: int | None = Field(description="For a child of a fan-out: the number of the fan-out.")
    kind: NodeKind
    run: str
    queue: str
    status: StepState
    attempt: int
    failures: int
    losses: int
    worker: UUID | None
    waiting_for: WaitingFor | None
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
    """A node of the graph and its state."""

    no: int
    step: str
    kind: NodeKind
    run: str
    queue: str
    needs: list[str]
    status: StepState
    complete: bool
    running: bool
    failed: bool
    attempt: int
    failures: int
    losses: int
    started_at: Time | None
    finished_at: Time | None
    seconds: float | None
    waiting_for: WaitingFor | None
    wake_at: Time | None
    progress: Any
    error: Any
    fan: FanDocument | None


class EdgeDocument(Told):
    """`target` needs `source`."""

    source: str
    target: str


class WaitDocument(Told):
    """The reason that a step waits."""

    step: str
    kind: WaitKind | HoldName
    provider: str | None
    external_id: str | None
    until: Time | None
    reason: str


class ChildrenDocument(Told):
    """The children of a fan-out in the order of their index, from 0: their numbers and states."""

    no: list[int]
    status: list[int] = Field(description="For each child, an index into `statuses`.")


class GraphDocument(Told):
    """A job's graph."""

    job_id: UUID
    seq: int = Field(
        description="The number of the job's last event at the time of the read. Later events may already be visible."
    )
    status: JobState
    workflow_status: WorkflowStatus | None
    is_paused: bool
    nodes: list[NodeDocument]
    edges: list[EdgeDocument]
    counts: dict[StepState, int]
    incoming: dict[str, int] = Field(description="For each step, the number of dependencies that are not done.")
    ready: list[str]
    pending_operations: int
    completed_operations: int
    waiting_for: list[WaitDocument]
    results: dict[str, Any] | None = Field(
        description='`{"steps": {name: {"outputs": …}}}`; a large output is `{"$artifact": …}`, see /steps/{no}/output.'
    )
    statuses: list[str] | None = Field(
        description="The meaning of each number in `children`: a status, with its wait if it waits (`PARKED:retry`)."
    )
    children: dict[str, ChildrenDocument] | None = Field(
        description="By the number of the fan-out; only with `children=states`."
    )


class EventDocument(Told):
    """An event of a job."""

    job_id: UUID
    seq: int
    at: Time
    type: EventType
    source: str
    no: int | None
    attempt: int | None
    payload: Any
    correlation_id: str | None
    idempotency_key: str = Field(
        description="Store it to apply an event once. It is the sender's, such as the id of a signal, or is made from "
        "the event itself: then no other event has it."
    )


class EventPage(Told):
    """Events in order. `next` is set while the page is full. Send it as `after`, or with `desc` as `before`."""

    items: list[EventDocument]
    next: int | None


class ReasonDocument(Told):
    """Why a step does not run, or how it ended."""

    step: str
    status: StepState
    because: str
    detail: dict[str, Any]


class Reasons(Told):
    """A reason for each unfinished step."""

    items: list[ReasonDocument]
    is_more: bool


def step_document(job_id: UUID, plan: Plan, step: StepView) -> StepDocument:
    """Return a step's document."""
    return StepDocument.model_construct(**step_values(job_id, plan, step))


def graph_document(job: JobView, view: GraphView) -> GraphDocument:
    """Return a graph's document."""
    return document_of(GraphDocument, graph_values(job, view))


def event_document(job_id: UUID, event: EventView) -> EventDocument:
    """Return an event's document."""
    return EventDocument.model_construct(**event_values(job_id, event))


def reason_document(reason: Reason) -> ReasonDocument:
    """Return a reason's document."""
    return ReasonDocument.model_construct(**reason_values(reason))
