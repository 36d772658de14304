"""The types of events: a job's or a step's move into a state has one each, and so has everything else that is told.

A new state needs a type here: `core/draft.py` looks up the type of every state when it is imported.
"""

from __future__ import annotations

from enum import StrEnum


class EventType(StrEnum):
    """What happened to a job, or to one of its steps."""

    JOB_SUBMITTED = "job.submitted"
    JOB_KEPT = "job.kept"
    JOB_PAUSED = "job.paused"
    JOB_RESUMED = "job.resumed"
    JOB_PENDING = "job.pending"
    JOB_APPROVAL_REQUIRED = "job.approval_required"
    JOB_QUEUED = "job.queued"
    JOB_DISPATCHING = "job.dispatching"
    JOB_PROCESSING = "job.processing"
    JOB_PREVIEW = "job.preview"
    JOB_COMPLETED = "job.completed"
    JOB_FAILED = "job.failed"
    JOB_DENIED = "job.denied"
    JOB_TIMEOUT = "job.timeout"
    JOB_CANCELLED = "job.cancelled"
    JOB_EXPIRED = "job.expired"
    JOB_OUTPUT_QUARANTINED = "job.output_quarantined"
    STEP_BLOCKED = "step.blocked"
    STEP_READY = "step.ready"
    STEP_HELD = "step.held"
    STEP_QUEUED = "step.queued"
    STEP_RUNNING = "step.running"
    STEP_PARKED = "step.parked"
    STEP_COMPLETED = "step.completed"
    STEP_SKIPPED = "step.skipped"
    STEP_FAILED = "step.failed"
    STEP_CANCELLED = "step.cancelled"
    STEP_DENIED = "step.denied"
    STEP_QUARANTINED = "step.quarantined"
    STEP_ABANDONED = "step.abandoned"
    STEP_FANNED = "step.fanned"
    STEP_PROGRESS = "step.progress"
    STEP_PREVIEW = "step.preview"
    STEP_CHECKPOINT = "step.checkpoint"
    STEP_LOG = "step.log"
    # About a job, also if a step asked: the feed holds the events of jobs.
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_VOTED = "approval.voted"
    APPROVAL_ESCALATED = "approval.escalated"
    APPROVAL_DECIDED = "approval.decided"

    __hash__ = str.__hash__
