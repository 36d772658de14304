"""Who may see what the steps of a job made and said: one answer for every reader.

    content          what is read: an output, a preview, a log line, a progress message, an error
    reader           what reads it: a caller, the next step, the parent job, a webhook, the audit, a bell
    job, step        the states in which the job and the step stand
        │
        ▼
    seen(content, reader, job, step)  ─►  Visible | Hidden(because)

The store asks this question of every row that holds such content, before the row leaves it (`store/outputs.py`). An
answer that shows a part (redaction) is to be another member of `Answer`: the store does not type-check until it is
handled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windlass.core.states import JobState, StepState


class Content(StrEnum):
    """What is read."""

    # Given by the caller of the job: nothing that a step made.
    INPUT = "input"
    # Given to a child of a fan-out, and made from the outputs of other steps.
    ITEM = "item"
    OUTPUT = "output"
    PREVIEW = "preview"
    PROGRESS = "progress"
    LOG = "log"
    ERROR = "error"

    __hash__ = str.__hash__


class Reader(StrEnum):
    """What reads it."""

    # Documents, streams of one job, the console, the clients, the command line.
    CALLER = "caller"
    # The streams of all jobs, encoded once for all who follow.
    FEED = "feed"
    NEXT_STEP = "next_step"
    PARENT = "parent"
    # A job that runs another one again and keeps what that had finished.
    NEW_JOB = "new_job"
    WEBHOOK = "webhook"
    AUDIT = "audit"
    # A notification reaches every listener, whether or not it asked and may see the job.
    BELL = "bell"

    __hash__ = str.__hash__


class Because(StrEnum):
    """Why content is hidden; the value is the code that readers are told."""

    QUARANTINED = "output_quarantined"
    # The output of a job that may still be judged.
    NOT_FINAL = "not_final"


@dataclass(frozen=True, slots=True)
class Visible:
    """The content is shown as it is stored."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The content is not shown. The reader is told why."""

    because: Because


Answer = Visible | Hidden

VISIBLE = Visible()
_QUARANTINED = Hidden(Because.QUARANTINED)
_NOT_FINAL = Hidden(Because.NOT_FINAL)

MESSAGE = "The output policy quarantined this content, so it is not shown"
REMEDY = "Ask an operator to review it, or run the job again"


def seen(content: Content, reader: Reader, job: JobState | None, step: StepState | None) -> Answer:
    """Decide whether a reader may see some content. `step` is None for content of the job itself.

    A quarantined job hides all that its steps made. A quarantined step hides what it made and its item. A new job may
    take the item of such a step: it keeps items only together with the steps that they were made from.
    """
    if content is Content.INPUT:
        return VISIBLE
    if job is JobState.OUTPUT_QUARANTINED:
        return _QUARANTINED
    if step is StepState.QUARANTINED and not (content is Content.ITEM and reader is Reader.NEW_JOB):
        return _QUARANTINED
    if reader is Reader.BELL and not (
        content is Content.OUTPUT and job is JobState.COMPLETED and step is StepState.COMPLETED
    ):
        return _NOT_FINAL
    return VISIBLE


def is_visible(content: Content, reader: Reader, job: JobState | None, step: StepState | None = None) -> bool:
    """Return whether the reader sees all of the content."""
    return isinstance(seen(content, reader, job, step), Visible)
