"""Documents about jobs that run again, and about dead letters."""

from __future__ import annotations

from typing import Any

from windlass.core.rerun import Again
from windlass.views.dead_letters import IDS_SHOWN_MAX, DeadLetters


def rerun_values(again: Again) -> dict[str, Any]:
    """Return the fields of the document that previews a job that runs again."""
    return {
        "run_again": list(again.run_again),
        "kept": list(again.kept),
        "stale": list(again.stale),
        "inputs_changed": list(again.inputs_changed),
        "kept_children": dict(again.kept_children),
    }


def dead_letter_values(kind: DeadLetters) -> dict[str, Any]:
    """Return the fields of the document of one kind of dead letters."""
    return {
        "fingerprint": kind.fingerprint,
        "code": kind.code,
        "message": kind.message,
        "recipe": kind.recipe,
        "step": kind.step,
        "count": len(kind.job_ids),
        "first_at": kind.first_at,
        "last_at": kind.last_at,
        "versions": list(kind.versions),
        "example_job": kind.job_ids[0],
        "job_ids": list(kind.job_ids[:IDS_SHOWN_MAX]),
    }
