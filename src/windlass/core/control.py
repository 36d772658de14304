"""What a caller may do to a job that is under way: cancel, pause, resume; and what time does to it."""

from __future__ import annotations

from typing import Literal, NamedTuple
from uuid import UUID

from windlass.core.draft import Draft, Event
from windlass.core.errors import WrongState
from windlass.core.graph import end
from windlass.core.hold import Hold
from windlass.core.outcome import Fault
from windlass.core.states import JobState

BulkAction = Literal["cancel", "retry"]


class Targets(NamedTuple):
    """The jobs that one action concerns, the newest first, and whether there may be more."""

    job_ids: tuple[UUID, ...]
    is_more: bool


def cancel(draft: Draft, reason: str) -> bool:
    """End the job as CANCELLED. A job that has already ended stays as it is; says whether anything changed."""
    if draft.is_finished:
        return False
    end(draft, JobState.CANCELLED, Fault("cancelled", reason or "cancelled by the caller"))
    return True


def overdue(draft: Draft, *, is_deadline: bool) -> bool:
    """The job ran past its deadline (TIMEOUT), or past its time to live (EXPIRED)."""
    if draft.is_finished:
        return False
    if is_deadline:
        end(draft, JobState.TIMEOUT, Fault("deadline", "the job did not finish before its deadline"))
    else:
        end(draft, JobState.EXPIRED, Fault("expired", "the job did not finish within its time to live"))
    return True


def pause(draft: Draft) -> bool:
    """Start nothing new: queued steps are held. Attempts that run go on, and their results count."""
    if draft.is_finished:
        raise WrongState(
            f"the job is already {draft.job.state}", remedy="Only a job that is not finished can be paused"
        )
    if draft.job.is_paused:
        return False
    draft.job.is_paused = draft.has_line = True
    draft.events.append(Event("job.paused", draft.source))
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
    draft.events.append(Event("job.resumed", draft.source))
    # A step that the router has yet to look at was left READY; it needs a new look now.
    draft.has_ready = draft.has_line = True
    for no in sorted(draft.steps):
        step = draft.steps[no]
        draft.release(step, Hold.PAUSED)
    return True
