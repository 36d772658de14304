"""The recovery times of killed workers' steps: from the kill until the step runs again. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from windlass.engine.hand_back import SOURCE
from windlass.testing.chaos.cluster import Kill
from windlass.testing.chaos.evidence import Evidence, JobHistory
from windlass.views.read import EventView


def recovery_times(evidence: Evidence, kills: Sequence[Kill]) -> list[float]:
    """Return the seconds from each kill to the next attempt of every step that the worker was running.

    Steps that never ran again are left out: their job was cancelled, or their last attempt had reported.
    """
    killed: dict[UUID, float] = {}
    for kill in kills:
        for worker in evidence.workers:
            # A process that lost its lease returns under a new id; the last id before the kill counts.
            if worker.pid == kill.pid and worker.started_at.timestamp() <= kill.at_s:
                killed[worker.id] = kill.at_s
    return sorted(wait_s for job in evidence.jobs.values() for wait_s in _waits(job, killed))


def _waits(job: JobHistory, killed: dict[UUID, float]) -> list[float]:
    waits: list[float] = []
    by_step: dict[int, list[EventView]] = {}
    for event in job.events:
        if event.no is not None and event.type not in ("step.progress", "step.preview", "step.checkpoint", "step.log"):
            by_step.setdefault(event.no, []).append(event)
    for events in by_step.values():
        for place, event in enumerate(events[:-1]):
            at_s = killed.get(UUID(event.payload["worker"])) if event.type == "step.running" else None
            if at_s is None or event.at.timestamp() > at_s or events[place + 1].at.timestamp() < at_s:
                continue
            again = [later for later in events[place + 1 :] if later.type == "step.running"]
            if again and events[place + 1].source in (SOURCE, "rescuer"):
                waits.append(again[0].at.timestamp() - at_s)
    return waits
