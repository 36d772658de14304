"""Notes: an attempt's progress, preview, checkpoint and log lines before its end, fenced like a report.

A running attempt writes its own notes. For an attempt that waits for external work, the provider's reports write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from windlass.core.draft import Draft, Event
from windlass.core.event import EventType
from windlass.core.states import JobState, StepState


@dataclass(frozen=True, slots=True)
class Note:
    """A note of one attempt; a field that is None is absent. `preview` and `checkpoint` are JSON texts.

    `source` is the origin of the note (`worker`, `webhook`, `poller`, `callback`). `worker` is as in `Report`.
    """

    job_id: UUID
    no: int
    attempt: int
    progress_pct: float | None = None
    message: str | None = None
    preview: str | None = None
    checkpoint: str | None = None
    # `lines`, each with `at`, `level` and `text`, and `dropped`, the number of lines lost before them.
    log: dict[str, Any] | None = None
    source: str = "worker"
    worker: UUID | None = None

    @property
    def progress(self) -> dict[str, Any] | None:
        """The percentage and the message together."""
        if self.progress_pct is None and self.message is None:
            return None
        return {"pct": self.progress_pct, "message": self.message}


def note(draft: Draft, said: Note, preview: Any = None) -> bool:
    """Record the note if its attempt is still in progress. `preview` is the decoded value."""
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
        draft.events.append(Event(EventType.STEP_PREVIEW, said.source, step.no, step.attempt, {"value": preview}))
    elif progress is not None and draft.job.state is JobState.PREVIEW:
        draft.move_job(JobState.PROCESSING)
    if progress is not None:
        draft.events.append(Event(EventType.STEP_PROGRESS, said.source, step.no, step.attempt, progress))
    if said.checkpoint is not None:
        draft.events.append(Event(EventType.STEP_CHECKPOINT, said.source, step.no, step.attempt))
    if said.log is not None:
        draft.events.append(Event(EventType.STEP_LOG, said.source, step.no, step.attempt, said.log))
    return True
