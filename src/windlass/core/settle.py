"""Settle: decides what a report about an attempt changes. Every attempt ends here.

`settle` accepts a report only for the step's current attempt. The step must be RUNNING on the worker that the report
names, or PARKED and waiting for a report from outside. Any other report is late or a duplicate and changes nothing:
a report of a worker that was presumed dead, a webhook after the poller's answer, a second callback.

The attempt number alone is not enough. A failover may lose the last commits, and a crash may undo a claim. Then another
worker gets the same attempt number while the first worker still runs.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import assert_never

from windlass.core.draft import Draft, Step
from windlass.core.effect import Charge, GiveUpWork, RecordWork
from windlass.core.external import ID_MAX, WAIT_S, is_id
from windlass.core.graph import complete, end, fail
from windlass.core.outcome import (
    Cancel,
    Cost,
    Failure,
    Fault,
    Lost,
    Parked,
    Released,
    Report,
    Snooze,
    Success,
)
from windlass.core.plan import Node
from windlass.core.queue import apart, is_apart
from windlass.core.retry import DATABASE_ATTEMPT, LOSSES_MAX, SILENT_LOSSES_MAX, SUSPECT_LOSSES
from windlass.core.states import JobState, StepState
from windlass.core.wait import Wait, WaitKind

DATABASE_LOST = "database_lost"
WORKER_LOST = "worker_lost"
MAX_RETRIES_EXCEEDED = "max_retries_exceeded"
# The fault's message shows this many of the last log lines; its detail has all lines that were kept.
LINES_SHOWN = 3


def is_current(draft: Draft, report: Report) -> bool:
    """Return whether the report is about an attempt that is still in progress."""
    step = draft.steps.get(report.no)
    if step is None or draft.is_finished or step.attempt != report.attempt:
        return False
    if step.state is StepState.RUNNING:
        return report.worker is None or report.worker == step.worker
    return step.waits_outside and report.worker is None and isinstance(report.outcome, Success | Failure | Cancel)


def settle(draft: Draft, report: Report, spread: float) -> bool:
    """Apply a current report; return whether it took effect. `spread` in [0, 1) spreads the retries."""
    if not is_current(draft, report):
        return False
    step = draft.steps[report.no]
    draft.source = report.source
    outcome = report.outcome
    if report.cost is not None and report.cost.is_sound:
        draft.effects.append(charge(draft, step, report.cost))
    match outcome:
        case Success():
            complete(draft, step, outcome.output, idempotency_key=report.idempotency_key)
        case Failure():
            failed(draft, step, outcome, spread, report.idempotency_key)
        case Snooze():
            draft.park(step, Wait(WaitKind.SNOOZE), draft.now + timedelta(seconds=outcome.after_s))
        case Parked() if outcome.external_id is not None and not is_id(outcome.external_id):
            fault = Fault(
                "bad_external_id", f"the provider's id for the work must be a text of 1 to {ID_MAX} characters"
            )
            failed(draft, step, Failure(fault, is_retryable=False), spread, report.idempotency_key)
        case Parked():
            within_s = _within_s(draft.plan.nodes[step.node], outcome)
            until = None if within_s is None else draft.now + timedelta(seconds=within_s)
            draft.park(step, Wait(WaitKind.EXTERNAL, outcome.waiting_for), until)
            if outcome.external_id is not None:
                draft.effects.append(RecordWork(step.no, outcome.external_id))
        case Cancel():
            reason = outcome.reason or "the handler cancelled the job"
            end(draft, JobState.CANCELLED, Fault("cancelled", reason))
        case Released():
            draft.admit(step, payload={"because": "released"}, keeps_slot=True)
        case Lost():
            _lost(draft, step, outcome)
        case _:
            assert_never(outcome)
    return True


def charge(draft: Draft, step: Step, cost: Cost, attempt: int | None = None) -> Charge:
    """Return the charge for an attempt. The provider that the cost names is paid, by default the step's own."""
    provider = cost.provider or draft.plan.nodes[step.node].provider
    return Charge(step.no, attempt or step.attempt, provider, cost)


def failed(draft: Draft, step: Step, failure: Failure, spread: float = 0.0, idempotency_key: str | None = None) -> None:
    """Schedule a retry if the step's policy allows it; otherwise fail the step for good."""
    policy = draft.plan.nodes[step.node].retry
    fault = failure.fault
    step.failures += failure.is_counted
    if not failure.is_retryable or step.failures >= policy.max_attempts:
        fail(draft, step, fault, idempotency_key=idempotency_key)
        return
    most = draft.job.attempts_max
    if most is not None and failure.is_counted and step.failures >= most:
        told = f"the policy allows {most} attempts; the last one failed with {fault.code}: {fault.message}"
        fail(draft, step, replace(fault, code=MAX_RETRIES_EXCEEDED, message=told), idempotency_key=idempotency_key)
        return
    backoff = DATABASE_ATTEMPT if fault.code == DATABASE_LOST else policy.backoff
    wait_s = backoff.wait_s(max(1, step.failures), spread) if failure.after_s is None else failure.after_s
    step.error = fault
    if step.state is StepState.PARKED:
        draft.effects.append(GiveUpWork(step.no))
    draft.park(step, Wait(WaitKind.RETRY), draft.now + timedelta(seconds=wait_s), error=fault.as_json())


def _within_s(node: Node, parked: Parked) -> float | None:
    if parked.within_s is not None:
        return parked.within_s
    if node.wait_s is not None:
        return node.wait_s
    # The step holds a place at the provider while it waits, so the wait must end.
    return WAIT_S if node.provider else None


def _lost(draft: Draft, step: Step, lost: Lost) -> None:
    """Queue the step again: first in its own queue, later in the apart queue. Fail it after too many losses alone.

    A step runs alone exactly when it waits in the apart twin of its queue. So the losses beyond SUSPECT_LOSSES all
    happened while the step ran alone.
    """
    queue = step.queue or draft.plan.nodes[step.node].queue
    # A suspect must run alone. If it had company, the loss proves nothing.
    is_proof = is_apart(queue) and not lost.company
    step.losses += not is_apart(queue) or is_proof
    if is_proof and step.losses >= (LOSSES_MAX if lost.company == 0 else SILENT_LOSSES_MAX):
        fail(draft, step, _poison(step, lost))
        return
    if step.losses >= SUSPECT_LOSSES:
        draft.requeue(step, apart(queue))
    told = {"because": WORKER_LOST, "company": lost.company, "how": lost.how}
    # The provider may still run the step's work, so the step keeps its slot.
    draft.admit(step, payload={key: value for key, value in told.items() if value not in (None, "")}, keeps_slot=True)


def _poison(step: Step, lost: Lost) -> Fault:
    """Return the fault, with the evidence, of a step that was lost too often while it ran alone."""
    times = step.losses - SUSPECT_LOSSES
    parts = [f"{lost.how or 'the worker was lost'} while it ran this step alone, {times} times"]
    if lost.peak_bytes:
        parts.append(f"peak memory {_size(lost.peak_bytes)}")
    if lost.lines:
        parts.append(f"last lines: {' | '.join(lost.lines[-LINES_SHOWN:])}")
    return Fault(WORKER_LOST, "; ".join(parts), detail="\n".join(lost.lines))


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
