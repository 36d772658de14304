"""A job's graph for display: every node with its state, the ready steps, the waits and the results.

A fan-out is one node with counts, so the cost does not grow with its width. Its children come in pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.errors import BadInput, NotFound, TooLarge, WrongState
from windlass.core.hold import Hold, HoldName
from windlass.core.plan import NodeKind, Plan
from windlass.core.states import STEP_DONE, StepState
from windlass.core.visibility import Reader
from windlass.core.wait import WaitKind
from windlass.pure.workflow import WorkflowStatus, workflow_status
from windlass.store.artifact import Artifacts, Ref, ref_in
from windlass.store.database import Database
from windlass.store.outputs import fetch, fetch_or_refuse
from windlass.store.plans import plan_of
from windlass.store.statements import sql
from windlass.views import work
from windlass.views.explain import step_name
from windlass.views.fan_output import FanOutput
from windlass.views.read import FanCount, JobView, StepView, overview, view_of

STEPS_PAGE_MAX = 500
WAITS_MAX = 200
CHILDREN_MAX = 50_000
RESULTS_FAN_MAX = 1_000
RESULTS_BYTES_MAX = 16 * 1024 * 1024
_FAN_PAGE = 100
_REF_CHARS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Wait:
    """What a step waits for."""

    step: str
    kind: WaitKind | HoldName
    provider: str | None
    external_id: str | None
    until: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class Fan:
    """The progress of a fan-out."""

    total: int | None
    made: int
    by_state: dict[StepState, int]


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node of the plan, and its step in this job."""

    step: StepView
    name: str
    kind: NodeKind
    run: str
    needs: tuple[str, ...]
    fan: Fan | None


@dataclass(frozen=True, slots=True)
class Children:
    """The states of fan-outs' children: for each fan-out their numbers, and for each child an index into `statuses`."""

    statuses: list[str]
    by_fan: dict[int, tuple[list[int], list[int]]]


@dataclass(frozen=True, slots=True)
class GraphView:
    """The whole graph. `incoming` counts, for each node, the unfinished steps that it needs."""

    workflow: WorkflowStatus | None
    nodes: list[NodeView]
    edges: list[tuple[str, str]]
    counts: dict[StepState, int]
    incoming: dict[str, int]
    ready: list[str]
    pending: int
    completed: int
    waits: list[Wait]
    results: dict[str, Any] | None = field(default=None)
    children: Children | None = field(default=None)


async def graph(db: Database, job: JobView, *, with_results: bool = False, with_children: bool = False) -> GraphView:
    """Build the graph of a job that was already read."""
    plan = await plan_of(db, job.plan)
    steps, fans = await overview(db, job.id)
    async with db.connection() as connection:
        rows = await fetch(connection, "graph_waits", Reader.CALLER, job.id, WAITS_MAX)
    children = [view_of(StepView, row) for row in rows]
    by_node: dict[int, list[FanCount]] = {}
    for fan in fans:
        by_node.setdefault(fan.node, []).append(fan)
    states = {plan.nodes[step.node].name: step.state for step in steps}
    counts = Counter(step.state for step in steps)
    for fan in fans:
        counts[fan.state] += fan.count
    done = sum(counts[state] for state in (StepState.COMPLETED, StepState.SKIPPED))
    waiting = [step for step in (*steps, *children) if _is_waiting(step)][:WAITS_MAX]
    names = await _external_ids(db, job.id) if any(_kind(step) == WaitKind.EXTERNAL for step in waiting) else {}
    waits = [_wait(plan, step, names.get(step.no)) for step in waiting]
    return GraphView(
        workflow=_workflow(job, steps, fans, children),
        nodes=[_node(plan, step, by_node.get(step.node)) for step in steps],
        edges=[(need, node.name) for node in plan.nodes for need in node.needs],
        counts=dict(sorted(counts.items())),
        incoming={node.name: sum(states[need] not in STEP_DONE for need in node.needs) for node in plan.nodes},
        ready=[name for name, state in states.items() if state in (StepState.READY, StepState.QUEUED)],
        pending=sum(counts.values()) - done,
        completed=done,
        waits=waits,
        results=await results(db, job.id, plan, steps) if with_results else None,
        children=await children_of(db, job.id) if with_children else None,
    )


async def children_of(db: Database, job_id: UUID) -> Children:
    """Return the states of the job's fan-out children, the first CHILDREN_MAX of them."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("graph_children"), job_id, CHILDREN_MAX)
    codes: dict[str, int] = {}
    by_fan = {
        row["node"]: (row["numbers"], [codes.setdefault(status, len(codes)) for status in row["statuses"]])
        for row in rows
    }
    return Children(list(codes), by_fan)


def _workflow(
    job: JobView, steps: Sequence[StepView], fans: Sequence[FanCount], children: Sequence[StepView]
) -> WorkflowStatus | None:
    found: Counter[tuple[StepState, str]] = Counter((step.state, _kind(step)) for step in steps)
    # Children are known by their counts only, except waiting children, which were read one by one.
    for fan in fans:
        if fan.state not in (StepState.PARKED, StepState.HELD):
            found[fan.state, ""] += fan.count
    found.update((child.state, _kind(child)) for child in children)
    return workflow_status(found, has_started=job.started_at is not None, is_finished=job.is_finished)


def _kind(step: StepView) -> str:
    return (step.waiting_for or "").partition(":")[0]


def _is_waiting(step: StepView) -> bool:
    return step.state in (StepState.PARKED, StepState.HELD) and _kind(step) != WaitKind.FAN


async def _external_ids(db: Database, job_id: UUID) -> dict[int, str]:
    """Return the providers' ids of the work that these steps wait for."""
    found = await work.work_of(db, job_id)
    return {one.no: one.external_id for one in found if one.external_id is not None and one.ended_at is None}


def _wait(plan: Plan, step: StepView, external_id: str | None) -> Wait:
    kind = _kind(step)
    rest = (step.waiting_for or "").partition(":")[2]
    provider = rest if kind == WaitKind.EXTERNAL else ""
    if kind == WaitKind.CHILD:
        external_id = rest
    reason = f"waits for {rest}" if rest else f"waits: {kind or step.state.lower()}"
    typed = Hold(step.holds).names[0] if step.holds else WaitKind(kind)
    return Wait(step_name(plan, step), typed, provider or None, external_id or None, step.wake_at, reason)


def _node(plan: Plan, step: StepView, fans: list[FanCount] | None) -> NodeView:
    node = plan.nodes[step.node]
    fan = None
    if node.each is not None:
        by_state = {one.state: one.count for one in fans or ()}
        fan = Fan(step.fan, sum(by_state.values()), by_state)
    return NodeView(step, node.name, node.kind, node.run, node.needs, fan)


async def results(db: Database, job_id: UUID, plan: Plan, steps: Sequence[StepView]) -> dict[str, Any]:
    """Return the output of each finished step: an artifact as its reference, a fan-out as an ordered list."""
    found: dict[str, Any] = {}
    for step in steps:
        name = plan.nodes[step.node].name
        if step.state is StepState.SKIPPED:
            found[name] = {"skipped": True}
        elif step.state is StepState.COMPLETED:
            found[name] = {"outputs": step.output if step.fan is None else await _fan_outputs(db, job_id, step)}
    return {"steps": found}


async def _fan_outputs(db: Database, job_id: UUID, step: StepView) -> list[Any]:
    """Read the children's outputs a few at a time: each may be as large as a row allows, and there may be many."""
    found: list[Any] = []
    size = 0
    while len(found) < RESULTS_FAN_MAX:
        async with db.connection() as connection:
            values = (job_id, step.node, len(found) - 1, _FAN_PAGE)
            rows = await fetch(connection, "graph_fan_outputs", Reader.CALLER, *values)
        size += sum(len(row["output"] or "") for row in rows)
        if size > RESULTS_BYTES_MAX:
            raise TooLarge(
                f"the results of this job are over {RESULTS_BYTES_MAX:,} bytes", remedy="Read them step by step"
            )
        found += [None if row["output"] is None else msgspec.json.decode(row["output"]) for row in rows]
        if len(rows) < _FAN_PAGE:
            break
    return found


async def steps_page(
    db: Database,
    job: JobView,
    *,
    step: str | None = None,
    states: Sequence[StepState] = (),
    after: int = -1,
    limit: int = 100,
) -> tuple[Plan, list[StepView], bool]:
    """Return the job's steps after a number, whether there are more, and the plan that names them."""
    if not 1 <= limit <= STEPS_PAGE_MAX:
        raise BadInput(f"a page has 1 to {STEPS_PAGE_MAX} steps, not {limit}")
    plan = await plan_of(db, job.plan)
    if step is not None and step not in plan.number:
        raise NotFound(f"job {job.id} has no step {step}", remedy=f"Its steps are {', '.join(plan.number)}")
    node = None if step is None else plan.number[step]
    wanted = [str(state) for state in states] or None
    async with db.connection() as connection:
        rows = await fetch(connection, "graph_steps", Reader.CALLER, job.id, after, node, wanted, limit + 1)
    return plan, [view_of(StepView, row) for row in rows[:limit]], len(rows) > limit


async def output_ref(db: Database, artifacts: Artifacts, job_id: UUID, no: int) -> Ref | FanOutput | bytes:
    """Return a step's output: the artifact that holds it, the list of a fan-out, or its JSON text."""
    async with db.connection() as connection:
        rows = await fetch_or_refuse(connection, "graph_output", Reader.CALLER, job_id, no)
    row = next(iter(rows), None)
    if row is None:
        raise NotFound(f"job {job_id} has no step {no}", remedy="Its steps are listed under /steps")
    if row["fan"] is not None and row["state"] == StepState.COMPLETED:
        return await FanOutput.load(db, artifacts, job_id, no)
    if row["output"] is None:
        raise WrongState(f"step {no} of job {job_id} is {row['state']} and has no output")
    text: str = row["output"]
    # A reference is short, so a large value need not be decoded to rule it out.
    ref = ref_in(msgspec.json.decode(text)) if len(text) <= _REF_CHARS_MAX else None
    return ref or text.encode()
