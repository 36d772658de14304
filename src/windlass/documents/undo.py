"""The document of the undo of a job."""

from __future__ import annotations

from typing import Any

from windlass.views.read import JobView
from windlass.views.undo import UndoView, effects


def undo_values(job: JobView, view: UndoView) -> dict[str, Any]:
    """Return the fields of the document of a job's undo."""
    return {
        "job_id": job.id,
        "effects": effects(job),
        "undo_job_id": job.undo_job_id,
        "undo_jobs": list(view.undo_jobs),
        "undo": view.mode,
        "undo_order": view.order,
        "steps": [
            {
                "no": step.no,
                "step": step.step,
                "run": step.run,
                "needs": list(step.needs),
                "status": step.state,
                "undo_job_id": step.undo_job,
            }
            for step in view.steps
        ],
        "final": list(view.finals),
    }
