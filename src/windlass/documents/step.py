"""Documents about the steps, the graph, the events and the reasons of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from windlass.core.event import EventType
from windlass.core.plan import Plan
from windlass.core.states import StepState
from windlass.documents.tracebacks import shown_error, shown_payload
from windlass.documents.values import known
from windlass.views.explain import REASONS_MAX, Reason
from windlass.views.job_graph import GraphView, NodeView
from windlass.views.read import EventView, JobView, StepView


def step_values(job_id: UUID, plan: Plan, step: StepView) -> dict[str, Any]:
    """Return the fields of a step's document."""
    node = plan.nodes[step.node]
    return {
        "no": step.no,
        "step": node.name,
        "index": step.index,
        # The parent is the step of the node, which has the node's number.
        "parent": None if step.index is None else step.node,
        "kind": node.kind,
        "run": node.run,
        "queue": step.queue,
        "status": step.state,
        "attempt": step.attempt,
        "failures": step.failures,
        "losses": step.losses,
        "worker": step.worker,
        "waiting_for": step.waiting_for,
        "wake_at": step.wake_at,
        "progress": step.progress,
        "error": shown_error(step.error),
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "links": {"output": f"/jobs/{job_id}/steps/{step.no}/output"},
    }


def graph_values(job: JobView, view: GraphView) -> dict[str, Any]:
    """Return the fields of a graph's document."""
    children = view.children
    return {
        "job_id": job.id,
        "seq": job.event_seq,
        "status": job.state,
        "workflow_status": view.workflow,
        "is_paused": job.is_paused,
        "nodes": [_node(node) for node in view.nodes],
        "edges": [{"source": source, "target": target} for source, target in view.edges],
        "counts": view.counts,
        "incoming": view.incoming,
        "ready": view.ready,
        "pending_operations": view.pending,
        "completed_operations": view.completed,
        "waiting_for": [{name: getattr(wait, name) for name in type(wait).__slots__} for wait in view.waits],
        "results": view.results,
        "statuses": None if children is None else children.statuses,
        "children": None
        if children is None
        else {str(fan): {"no": numbers, "status": codes} for fan, (numbers, codes) in children.by_fan.items()},
    }


def _node(node: NodeView) -> dict[str, Any]:
    step, fan = node.step, node.fan
    seconds = None
    if step.started_at is not None and step.finished_at is not None:
        seconds = (step.finished_at - step.started_at).total_seconds()
    return {
        "no": step.no,
        "step": node.name,
        "kind": node.kind,
        "run": node.run,
        "queue": step.queue,
        "needs": list(node.needs),
        "status": step.state,
        "complete": step.state in (StepState.COMPLETED, StepState.SKIPPED),
        "running": step.state is StepState.RUNNING,
        "failed": step.state is StepState.FAILED,
        "attempt": step.attempt,
        "failures": step.failures,
        "losses": step.losses,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "seconds": seconds,
        "waiting_for": step.waiting_for,
        "wake_at": step.wake_at,
        "progress": step.progress,
        "error": shown_error(step.error),
        "fan": None if fan is None else {"total": fan.total, "made": fan.made, "by_status": fan.by_state},
    }


def event_values(job_id: UUID, event: EventView) -> dict[str, Any]:
    """Return the fields of an event's document."""
    return {
        "job_id": job_id,
        "seq": event.seq,
        "at": event.at,
        "type": known(EventType, event.type),
        "source": event.source,
        "no": event.no,
        "attempt": event.attempt,
        "payload": shown_payload(event.payload),
        "correlation_id": event.correlation_id,
        "idempotency_key": event.idempotency_key or "",
    }


def reason_values(reason: Reason) -> dict[str, Any]:
    """Return the fields of a reason's document."""
    return {
        "step": reason.step,
        "status": reason.state,
        "because": reason.because,
        "detail": shown_payload(reason.detail),
    }


def reasons_values(found: Sequence[Reason]) -> dict[str, Any]:
    """Return the fields of the document of all reasons. Pass one reason more than the limit to set `is_more`."""
    return {"items": [reason_values(reason) for reason in found[:REASONS_MAX]], "is_more": len(found) > REASONS_MAX}
