"""What `--json` prints. The shapes are promised to programs: a key may be added, none goes or changes its meaning."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from windlass.client.views import DeadLetterView, RerunView
from windlass.core.plan import Plan
from windlass.core.rerun import Again
from windlass.pure.audit import Record
from windlass.pure.job_failed import JobFailed
from windlass.views.dead_letters import IDS_SHOWN_MAX, DeadLetters
from windlass.views.read import EventView, JobView, StepView
from windlass.views.recipes import RecipeVersion
from windlass.views.workers import WorkerView

WORKER = (
    "id", "host", "pid", "queues", "concurrency", "started_at", "seen_at", "lease_until", "lost_at", "running",
)  # fmt: skip


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """How long something took, or None while it is not known."""
    return (end - start).total_seconds() if start is not None and end is not None else None


def moment(at: datetime | None) -> str | None:
    """A time as programs read it: UTC, to the millisecond, as a server tells it too."""
    return None if at is None else f"{at.astimezone(UTC).isoformat(timespec='milliseconds')[:-6]}Z"


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
        "created_at": moment(job.created_at),
        "started_at": moment(job.started_at),
        "finished_at": moment(job.finished_at),
        "deadline_at": moment(job.deadline_at),
        "expires_at": moment(job.expires_at),
        "deleted_at": moment(job.deleted_at),
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
        "wake_at": moment(step.wake_at),
        "progress": step.progress,
        "error": step.error,
        "started_at": moment(step.started_at),
        "finished_at": moment(step.finished_at),
    }


def error_json(failure: JobFailed | None) -> dict[str, Any] | None:
    """How a job failed: the step, and its fault."""
    return None if failure is None else {"step": failure.step, **failure.fault}


def event_json(job_id: UUID, event: EventView) -> dict[str, Any]:
    """An event of a job."""
    return {
        "job_id": job_id,
        "seq": event.seq,
        "at": moment(event.at),
        "type": event.type,
        "source": event.source,
        "no": event.no,
        "attempt": event.attempt,
        "payload": event.payload,
        "correlation_id": event.correlation_id,
        "idempotency_key": event.idempotency_key,
    }


def recipe_json(recipe: RecipeVersion) -> dict[str, Any]:
    """A version of a recipe."""
    return {
        "name": recipe.name,
        "version": recipe.version,
        "plan_hash": recipe.plan_hash,
        "created_at": moment(recipe.created_at),
        "description": recipe.description,
    }


def worker_json(worker: WorkerView) -> dict[str, Any]:
    """A worker process."""
    return {
        "id": str(worker.id),
        "host": worker.host,
        "pid": worker.pid,
        "queues": list(worker.queues),
        "concurrency": worker.concurrency,
        "started_at": moment(worker.started_at),
        "seen_at": moment(worker.seen_at),
        "lease_until": moment(worker.lease_until),
        "lost_at": moment(worker.lost_at),
        "running": worker.running,
    }


def key_json(key: Any) -> dict[str, Any]:
    """A key, without what makes it one."""
    return {
        "id": key.id,
        "caller": key.caller,
        "caller_type": key.caller_type,
        "tier": key.tier,
        "scopes": sorted(key.scopes),
        "name": key.name,
        "created_at": moment(key.created_at),
        "created_by": key.created_by,
        "expires_at": moment(key.expires_at),
        "revoked_at": moment(key.revoked_at),
        "last_used_at": moment(key.last_used_at),
        "is_live": key.is_live,
    }


def record_json(record: Record, digest: bytes) -> dict[str, Any]:
    """A record of the audit, with its place in the chain."""
    return {
        "no": record.no,
        "at": moment(record.at),
        "event": record.event,
        "caller": record.caller,
        "caller_type": record.caller_type,
        "tier": record.tier,
        "job_id": None if record.job_id is None else str(record.job_id),
        "request_id": record.request_id,
        "payload": msgspec.json.decode(record.payload),
        "hash": digest.hex(),
    }


def webhook_json(view: Any) -> dict[str, Any]:
    """How far the word of a job's end has come."""
    return {
        "job_id": str(view.job_id),
        "url": view.url,
        "state": str(view.state),
        "tries": view.attempt,
        "failures": view.failures,
        "next_try_at": moment(view.due_at),
        "last_answer": view.answer,
        "last_error": view.error,
        "created_at": moment(view.created_at),
        "ended_at": moment(view.ended_at),
    }


def verdict_json(verdict: Any) -> dict[str, Any]:
    """What a look at the audit's chain found."""
    flaw = verdict.flaw
    return {
        "is_whole": verdict.is_whole,
        "records": verdict.records,
        "head": verdict.head.hex(),
        "broken_at": None if flaw is None else flaw.no,
        "because": None if flaw is None else flaw.reason,
    }


def provider_json(view: Any) -> dict[str, Any]:
    """A provider as all processes see it."""
    first = view.first
    return {
        "name": view.name,
        "concurrency": view.concurrency,
        "rate": view.rate,
        "held": view.held,
        "waiting": view.waiting,
        "holders": [
            {"job_id": str(one.job_id), "step": one.step, "attempt": one.attempt, "since": moment(one.since)}
            for one in view.holders
        ],
        "first": None
        if first is None
        else {"job_id": str(first.job_id), "step": first.step, "since": moment(first.since)},
        "breaker": view.breaker,
        "failures": view.failures,
        "error": view.error,
        "paused_until": moment(view.paused_until),
        "free_at": moment(view.free_at),
    }


def budget_json(view: Any) -> dict[str, Any]:
    """A budget; money is decimal text."""
    left = max(view.most - view.spent - view.reserved, Decimal(0))
    amounts = {"most": view.most, "spent": view.spent, "reserved": view.reserved, "left": left}
    return {"scope": view.scope, "name": view.name, **{name: money(amount) for name, amount in amounts.items()}}


def cost_json(one: Any, step: str) -> dict[str, Any]:
    """What an attempt cost."""
    return {
        "no": one.no,
        "step": step,
        "attempt": one.attempt,
        "provider": one.provider or None,
        "amount": money(one.amount),
        "tokens_in": one.tokens_in,
        "tokens_out": one.tokens_out,
        "seconds": one.seconds,
        "at": moment(one.at),
    }


def costs_json(items: list[dict[str, Any]], budget: Any, sums: Any = None) -> dict[str, Any]:
    """What a job's attempts cost, in all and each; `sums` if they are of more than is listed."""
    total = sum((Decimal(one["amount"]) for one in items), Decimal(0)) if sums is None else sums.total
    added = {
        name: sum(one[name] for one in items) if sums is None else getattr(sums, name)
        for name in ("tokens_in", "tokens_out", "seconds")
    }
    return {
        "total": money(total),
        **added,
        "seconds": float(added["seconds"]),
        "items": items,
        "budget": None if budget is None else budget_json(budget),
    }


def money(amount: Decimal) -> str:
    """An amount as text: no exponent, no zeros at the end that say nothing."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def again_json(again: Again | RerunView) -> dict[str, Any]:
    """What a job that runs again would do."""
    return {
        "run_again": list(again.run_again),
        "kept": list(again.kept),
        "stale": list(again.stale),
        "inputs_changed": list(again.inputs_changed),
        "kept_children": dict(again.kept_children),
    }


def dead_letter_json(kind: DeadLetters | DeadLetterView, count: int) -> dict[str, Any]:
    """Failed jobs of one kind."""
    return {
        "fingerprint": kind.fingerprint,
        "code": kind.code,
        "message": kind.message,
        "recipe": kind.recipe,
        "step": kind.step,
        "count": count,
        "first_at": moment(kind.first_at),
        "last_at": moment(kind.last_at),
        "versions": list(kind.versions),
        "job_ids": list(kind.job_ids[:IDS_SHOWN_MAX]),
    }
