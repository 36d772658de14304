"""What an attempt says before it ends: progress, a preview, a checkpoint, what it logged. Fenced like a report.

A running attempt speaks for itself. Of one that waits for work done elsewhere, whoever does the work speaks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from windlass.core.draft import Draft, Event
from windlass.core.states import JobState, StepState


@dataclass(frozen=True, slots=True)
class Note:
    """Words of one attempt; what is None was not said. `preview` and `checkpoint` are JSON texts.

    `source` is who says so (`worker`, `webhook`, `poller`, `callback`). `worker` is as in a report.
    """

    job_id: UUID
    no: int
    attempt: int
    progress_pct: float | None = None
    message: str | None = None
    preview: str | None = None
    checkpoint: str | None = None
    # `lines`, each with `at`, `level` and `text`, and how many before them were `dropped`.
    log: dict[str, Any] | None = None
    source: str = "worker"
    worker: UUID | None = None

    @property
    def progress(self) -> dict[str, Any] | None:
        """Percentage and message together."""
        if self.progress_pct is None and self.message is None:
            return None
        return {"pct": self.progress_pct, "message": self.message}


def note(draft: Draft, said: Note, preview: Any = None) -> bool:
    """Take down what was said, if the attempt is still under way. `preview` is the decoded value."""
    step = draft.steps.get(said.no)
    if step is None or draft.is_finished or step.attempt != said.attempt:
        return False
    is_outside = step.waits_for_provider
    if step.state is not StepState.RUNNING and not is_outside:
        return False
    if said.worker is not None and (is_outside or step.worker != said.worker):
        return False
    progress = said.progress
    if said.preview is not None:
        if draft.job.state is JobState.PROCESSING:
            draft.move_job(JobState.PREVIEW)
        draft.events.append(Event("step.preview", said.source, step.no, step.attempt, {"value": preview}))
    elif progress is not None and draft.job.state is JobState.PREVIEW:
        draft.move_job(JobState.PROCESSING)
    if progress is not None:
        draft.events.append(Event("step.progress", said.source, step.no, step.attempt, progress))
    if said.checkpoint is not None:
        draft.events.append(Event("step.checkpoint", said.source, step.no, step.attempt))
    if said.log is not None:
        draft.events.append(Event("step.log", said.source, step.no, step.attempt, said.log))
    return True
