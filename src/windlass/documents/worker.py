"""Documents about worker processes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from windlass.views.workers import AtWork, WorkerView

STEPS_SHOWN_MAX = 100
_SAME = (
    "id", "host", "pid", "concurrency", "running", "started_at", "seen_at", "lease_until", "lost_at", "services",
)  # fmt: skip


def worker_values(view: WorkerView, at_work: Sequence[AtWork], now: datetime) -> dict[str, Any]:
    """Return the fields of a worker's document."""
    steps = [
        {"job_id": one.job_id, "no": one.no, "step": one.step, "since": one.since} for one in at_work[:STEPS_SHOWN_MAX]
    ]
    return {
        **{name: getattr(view, name) for name in _SAME},
        "queues": list(view.queues),
        "is_live": view.lost_at is None and view.lease_until > now,
        "steps": steps,
    }
