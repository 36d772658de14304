"""Visibility: one decision, for every reader, about the content that the steps of a job produced.

    content          an output, a preview, a log line, a progress message, an error
    reader           a caller, the next step, the parent job, a webhook, the audit, a bell
    job, step        the current states of the job and the step
        │
        ▼
    seen(content, reader, job, step)  ─►  Visible | Hidden(because)

The store asks `seen` about every row with such content before it returns the row (`store/outputs.py`). An answer that
shows a part of the content (redaction) would be another member of `Answer`. The store then does not type-check until
it handles that member.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windlass.core.states import JobState, StepState


class Content(StrEnum):
    """The kinds of content."""

    # The caller of the job supplied it; no step produced it.
    INPUT = "input"
    # The item of a fan-out's child, made from the outputs of other steps.
    ITEM = "item"
    OUTPUT = "output"
    PREVIEW = "preview"
    PROGRESS = "progress"
    LOG = "log"
    ERROR = "error"

    __hash__ = str.__hash__


class Reader(StrEnum):
    """The kinds of readers."""

    # Documents, streams of one job, the console, the clients, the command line.
    CALLER = "caller"
    # The streams of all jobs, encoded once for all followers.
    FEED = "feed"
    NEXT_STEP = "next_step"
    PARENT = "parent"
    # A retry or a re-run: it keeps the finished steps of the old job.
    NEW_JOB = "new_job"
    # The undo of a step, which needs what the step did, even if people may not see it.
    UNDO = "undo"
    WEBHOOK = "webhook"
    AUDIT = "audit"
    # A notification reaches every listener, even a listener that may not see the job.
    BELL = "bell"

    __hash__ = str.__hash__


class Because(StrEnum):
    """The reason why content is hidden. Readers get the value as a code."""

    QUARANTINED = "output_quarantined"
    # The job is not final yet: its output may still be quarantined.
    NOT_FINAL = "not_final"


@dataclass(frozen=True, slots=True)
class Visible:
    """The reader gets the content as it is stored."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The reader gets the reason instead of the content."""

    because: Because


Answer = Visible | Hidden

VISIBLE = Visible()
_QUARANTINED = Hidden(Because.QUARANTINED)
_NOT_FINAL = Hidden(Because.NOT_FINAL)

MESSAGE = "The output policy quarantined this content, so it is not shown"
REMEDY = "Ask an operator to review it, or run the job again"


def seen(content: Content, reader: Reader, job: JobState | None, step: StepState | None) -> Answer:
    """Decide whether a reader may see some content. `step` is None for content of the job itself.

    A quarantined job hides everything that its steps produced. A quarantined step hides its own content and its item.
    A new job may copy the item of such a step: it keeps items only together with the steps that produced them. The undo
    of a step sees everything: an effect must not stay because its description is hidden.
    """
    if content is Content.INPUT or reader is Reader.UNDO:
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
    """Return whether the reader may see the whole content."""
    return isinstance(seen(content, reader, job, step), Visible)
