"""What `--json` prints. The shapes are promised to programs: a key may be added, none goes or changes its meaning."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.app.job import JobFailed
from windlass.core.plan import Plan
from windlass.engine.read import EventView, JobView, StepView


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """How long something took, or None while it is not known."""
    return (end - start).total_seconds() if start is not None and end is not None else None


def job_json(job: JobView) -> dict[str, Any]:
    """A job, without its steps. Payloads (input, output) have commands of their own."""
    return {
        "id": job.id,
        "recipe": job.recipe,
        "recipe_version": job.recipe_version,
        "plan": job.plan,
        "state": str(job.state),
        "is_paused": job.is_paused,
        "caller": job.caller,
        "priority": job.priority,
        "labels": job.labels or {},
        "idempotency_key": job.idempotency_key,
        "correlation_id": job.correlation_id,
        "steps_total": job.steps_total,
        "steps_open": job.steps_open,
        "steps_failed": job.steps_failed,
        "error": job.error,
        "parent_job": job.parent_job,
        "retry_of": job.retry_of,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "deadline_at": job.deadline_at,
        "expires_at": job.expires_at,
        "deleted_at": job.deleted_at,
    }


def step_json(step: StepView, plan: Plan) -> dict[str, Any]:
    """A step of a job."""
    node = plan.nodes[step.node]
    return {
        "no": step.no,
        "step": node.name,
        "index": step.index,
        "kind": str(node.kind),
        "run": node.run,
        "state": str(step.state),
        "queue": step.queue,
        "needs_unmet": step.unmet,
        "attempt": step.attempt,
        "failures": step.failures,
        "losses": step.losses,
        "worker": step.worker,
        "waiting_for": step.waiting_for,
        "wake_at": step.wake_at,
        "progress": step.progress,
        "error": step.error,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
    }


def error_json(failure: JobFailed | None) -> dict[str, Any] | None:
    """How a job failed: the step, and its fault."""
    return None if failure is None else {"step": failure.step, **failure.fault}


def event_json(job_id: UUID, event: EventView) -> dict[str, Any]:
    """An event of a job."""
    return {
        "job_id": job_id,
        "seq": event.seq,
        "at": event.at,
        "type": event.type,
        "source": event.source,
        "no": event.no,
        "attempt": event.attempt,
        "payload": event.payload,
        "correlation_id": event.correlation_id,
        "idempotency_key": event.idempotency_key,
    }
