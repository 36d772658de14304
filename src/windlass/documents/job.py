"""Documents about jobs. Only this module renames a job's `id` to `job_id` and its `state` to `status`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windlass.documents.tracebacks import shown_error
from windlass.engine.bulk import Bulk
from windlass.views.activity import Doing
from windlass.views.read import JobView
from windlass.views.undo import effects

_LINKS = ("input", "output", "graph", "steps", "events", "why", "costs", "stream")
_TAILS = (("self", ""), *((name, f"/{name}") for name in _LINKS))


def job_values(job: JobView) -> dict[str, Any]:
    """Return the fields of a job's document."""
    progress = job.progress if isinstance(job.progress, Mapping) else {}
    error = job.error if isinstance(job.error, Mapping) else {}
    address = f"/jobs/{job.id}"
    return {
        "job_id": job.id,
        "recipe": job.recipe,
        "recipe_version": job.recipe_version,
        "plan": job.plan,
        "status": job.state,
        "is_paused": job.is_paused,
        "caller": job.caller,
        "priority": job.priority,
        "labels": job.labels or {},
        "idempotency_key": job.idempotency_key,
        "correlation_id": job.correlation_id,
        "progress_pct": progress.get("pct"),
        "progress_message": progress.get("message"),
        "steps_total": job.steps_total,
        "steps_open": job.steps_open,
        "steps_failed": job.steps_failed,
        "seq": job.event_seq,
        "failed_step": error.get("step") or None,
        "error": shown_error(job.error),
        "parent_job": job.parent_job,
        "retry_of": job.retry_of,
        "effects": effects(job),
        "undo_job_id": job.undo_job_id,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "updated_at": job.updated_at or job.finished_at or job.started_at or job.created_at,
        "stuck_for": job.stuck_for_s,
        "deadline_at": job.deadline_at,
        "expires_at": job.expires_at,
        "deleted_at": job.deleted_at,
        # A job is one trace, and the job's id is the id of the trace.
        "trace_id": job.id.hex,
        "links": {name: address + tail for name, tail in _TAILS},
    }


def listed_values(job: JobView, doing: Doing | None) -> dict[str, Any]:
    """Return the fields of the document of a job in a list."""
    activity, waiting_for = (None, None) if doing is None else (doing.activity, doing.waiting_for)
    return {**job_values(job), "activity": activity, "waiting_for": waiting_for}


def bulk_values(action: str, dry_run: bool, done: Bulk) -> dict[str, Any]:
    """Return the fields of the document of an action on many jobs."""
    return {
        "action": action,
        "dry_run": dry_run,
        "matched": done.matched,
        "is_more": done.is_more,
        "running_steps": done.running_steps,
        "done": [{"job_id": job_id, "new_job_id": new_id} for job_id, new_id in done.done],
        "refused": [{"job_id": job_id, "code": code} for job_id, code in done.refused],
    }
