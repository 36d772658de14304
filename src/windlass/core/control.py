"""The actions on a job in progress: cancel, pause and resume by a caller; deadline and time to live by the clock."""

from __future__ import annotations

from typing import Literal, NamedTuple
from uuid import UUID

from windlass.core.draft import Draft, Event
from windlass.core.errors import WrongState
from windlass.core.event import EventType
from windlass.core.graph import end
from windlass.core.hold import Hold
from windlass.core.outcome import Fault
from windlass.core.states import JobState

BulkAction = Literal["cancel", "retry"]


class Targets(NamedTuple):
    """The jobs of a bulk action, newest first, and whether there may be more."""

    job_ids: tuple[UUID, ...]
    is_more: bool


def cancel(draft: Draft, reason: str, *, undo: bool = True) -> bool:
    """Cancel the job unless it has ended. Return whether anything changed. Without `undo` the effects stay."""
    if draft.is_finished:
        return False
    draft.keeps_effects = not undo
    end(draft, JobState.CANCELLED, Fault("cancelled", reason or "cancelled by the caller"))
    return True


def overdue(draft: Draft, *, is_deadline: bool) -> bool:
    """End a job that ran past its deadline (TIMEOUT) or its time to live (EXPIRED)."""
    if draft.is_finished:
        return False
    if is_deadline:
        end(draft, JobState.TIMEOUT, Fault("deadline", "the job did not finish before its deadline"))
    else:
        end(draft, JobState.EXPIRED, Fault("expired", "the job did not finish within its time to live"))
    return True


def pause(draft: Draft) -> bool:
    """Hold all queued steps and start no new ones. Running attempts continue, and their results count."""
    if draft.is_finished:
        raise WrongState(
            f"the job is already {draft.job.state}", remedy="Only a job that is not finished can be paused"
        )
    if draft.job.is_paused:
        return False
    draft.job.is_paused = True
    draft.events.append(Event(EventType.JOB_PAUSED, draft.source))
    for no in sorted(draft.steps):
        step = draft.steps[no]
        draft.hold(step, Hold.PAUSED)
    return True


def resume(draft: Draft) -> bool:
    """Undo `pause`."""
    if draft.is_finished:
        raise WrongState(f"the job is already {draft.job.state}", remedy="Only a paused job can be resumed")
    if not draft.job.is_paused:
        return False
    draft.job.is_paused = False
    draft.events.append(Event(EventType.JOB_RESUMED, draft.source))
    # The router left the job's READY steps alone while it was paused, so it must check them now.
    draft.has_ready = True
    for no in sorted(draft.steps):
        step = draft.steps[no]
        draft.release(step, Hold.PAUSED)
    return True
