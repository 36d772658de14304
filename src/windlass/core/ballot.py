"""Applies the result of an approval to the step that waits for it. No report of any other kind ends such a wait.

votes ─► tally ─► PENDING: an event, and nothing else
              ├─► REJECTED: the step fails, or completes with `approved: false`
              └─► APPROVED ─► second look ─► USED: the step completes
                                         └─► INVALIDATED: the step fails
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.approval import (
    APPROVAL_EXPIRED,
    APPROVAL_INVALID,
    APPROVAL_REJECTED,
    ApprovalState,
    OnReject,
    Vote,
    answer,
)
from windlass.core.draft import Draft, Event, Step
from windlass.core.event import EventType
from windlass.core.graph import complete, end
from windlass.core.outcome import Failure, Fault
from windlass.core.settle import failed
from windlass.core.states import JobState, StepState
from windlass.core.wait import Wait, WaitKind

EXPIRED = Fault(APPROVAL_EXPIRED, "the approval was not given in time")


def waits_for(draft: Draft, no: int, id: UUID) -> bool:
    """Return whether the step waits for this approval."""
    step = draft.steps.get(no)
    return (
        step is not None
        and not draft.is_finished
        and step.state is StepState.PARKED
        and step.wait == Wait(WaitKind.APPROVAL, str(id))
    )


def note_vote(draft: Draft, id: UUID, no: int | None, vote: Vote) -> None:
    """Add the event of a vote. The reason stays with the vote: the event is for everybody who may see the job."""
    told = {"approval": str(id), "no": no, "by": vote.caller, "choice": vote.choice}
    draft.events.append(Event(EventType.APPROVAL_VOTED, draft.source, payload=_known(told)))


def note_decision(draft: Draft, id: UUID, no: int | None, state: ApprovalState) -> None:
    """Add the event of an approval's end."""
    told = {"approval": str(id), "no": no, "state": state}
    draft.events.append(Event(EventType.APPROVAL_DECIDED, draft.source, payload=_known(told)))


def note_escalation(draft: Draft, id: UUID, no: int | None) -> None:
    """Add the event of an approval that more people may vote on now."""
    told = {"approval": str(id), "no": no}
    draft.events.append(Event(EventType.APPROVAL_ESCALATED, draft.source, payload=_known(told)))


def deny(draft: Draft, fault: Fault) -> None:
    """End a job whose approval was not given."""
    end(draft, JobState.DENIED, fault)


def conclude(draft: Draft, no: int, state: ApprovalState, votes: Sequence[Vote], on_reject: OnReject) -> None:
    """End the wait of a step whose approval was USED, REJECTED or INVALIDATED."""
    step = draft.steps[no]
    if state is ApprovalState.USED:
        _answer(draft, step, votes, approved=True)
    elif state is ApprovalState.REJECTED and on_reject is OnReject.CONTINUE:
        _answer(draft, step, votes, approved=False)
    else:
        failed(draft, step, Failure(fault_of(state, votes), is_retryable=False))


def fault_of(state: ApprovalState, votes: Sequence[Vote]) -> Fault:
    """Return the fault of a step or a job whose approval was not given."""
    if state is not ApprovalState.REJECTED:
        return Fault(APPROVAL_INVALID, "what would run is no longer what was approved")
    told = answer(votes, approved=False, at=votes[-1].at)
    reason = next((one for one in told["reasons"] if one), "")
    by = ", ".join(told["by"])
    return Fault(APPROVAL_REJECTED, f"rejected by {by}: {reason}" if reason else f"rejected by {by}")


def _answer(draft: Draft, step: Step, votes: Sequence[Vote], *, approved: bool) -> None:
    output = msgspec.json.encode(answer(votes, approved=approved, at=draft.now)).decode()
    complete(draft, step, output)


def _known(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}
