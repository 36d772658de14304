"""What a report means: the one decision through which every attempt ends.

A report is heard only if it speaks for the step's current attempt, and the step is RUNNING, or is PARKED and waits for
exactly such a report from outside. All else is late or doubled, and changes nothing: the worker that was presumed
dead, the webhook that comes after the poller, the callback sent twice.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from windlass.core.draft import EXTERNAL, OUTSIDE, RETRY, SNOOZE, Draft, Step
from windlass.core.external import ID_MAX, WAIT_S, is_id
from windlass.core.graph import complete, end, fail
from windlass.core.outcome import (
    Cancel,
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
from windlass.core.retry import DATABASE_ATTEMPT, LOSSES_MAX
from windlass.core.states import JobState, StepState

DATABASE_LOST = "database_lost"


def is_current(draft: Draft, report: Report) -> bool:
    """Whether the report speaks for an attempt that is still under way."""
    step = draft.steps.get(report.no)
    if step is None or draft.is_finished or step.attempt != report.attempt:
        return False
    if step.state is StepState.RUNNING:
        return True
    waits_outside = step.state is StepState.PARKED and (step.waiting_for or "").startswith(OUTSIDE)
    return waits_outside and isinstance(report.outcome, Success | Failure | Cancel)


def settle(draft: Draft, report: Report, chance: float) -> bool:
    """Apply the report, if it is current; `chance` in [0, 1) spreads the retries. Returns whether it took effect."""
    if not is_current(draft, report):
        return False
    step = draft.steps[report.no]
    draft.source = report.source
    outcome = report.outcome
    if report.cost is not None and report.cost.is_sound:
        draft.costs.append((step, report.cost))
    match outcome:
        case Success():
            complete(draft, step, outcome.output, idempotency_key=report.idempotency_key)
        case Failure():
            failed(draft, step, outcome, chance, report.idempotency_key)
        case Snooze():
            draft.park(step, SNOOZE, draft.now + timedelta(seconds=outcome.after_s))
        case Parked() if outcome.external_id is not None and not is_id(outcome.external_id):
            fault = Fault(
                "bad_external_id", f"what a provider calls the work is not a text of 1 to {ID_MAX} characters"
            )
            failed(draft, step, Failure(fault, is_retryable=False), chance, report.idempotency_key)
        case Parked():
            within_s = _within_s(draft.plan.nodes[step.node], outcome)
            until = None if within_s is None else draft.now + timedelta(seconds=within_s)
            draft.park(step, f"{EXTERNAL}:{outcome.waiting_for}", until)
            if outcome.external_id is not None:
                draft.external_ids[step.no] = outcome.external_id
        case Cancel():
            reason = outcome.reason or "the handler asked for it"
            end(draft, JobState.CANCELLED, Fault("cancelled", reason))
        case Released():
            draft.enqueue(step, payload={"because": "released"}, keeps_slot=True)
        case Lost():
            _lost(draft, step)
        case _:
            assert_never(outcome)
    return True


def failed(draft: Draft, step: Step, failure: Failure, chance: float = 0.0, idempotency_key: str | None = None) -> None:
    """The step is tried again later, as its policy says, or has failed for good."""
    policy = draft.plan.nodes[step.node].retry
    fault = failure.fault
    step.failures += failure.is_counted
    if not failure.is_retryable or step.failures >= policy.max_attempts:
        fail(draft, step, fault, idempotency_key=idempotency_key)
        return
    backoff = DATABASE_ATTEMPT if fault.code == DATABASE_LOST else policy.backoff
    wait_s = backoff.wait_s(max(1, step.failures), chance) if failure.after_s is None else failure.after_s
    step.error = fault
    if step.state is StepState.PARKED:
        draft.given_up |= {step.no}
    draft.park(step, RETRY, draft.now + timedelta(seconds=wait_s), error=fault.as_json())


def _within_s(node: Node, parked: Parked) -> float | None:
    if parked.within_s is not None:
        return parked.within_s
    if node.wait_s is not None:
        return node.wait_s
    # It holds one of the provider's places meanwhile, and must not do so for ever.
    return WAIT_S if node.provider else None


def _lost(draft: Draft, step: Step) -> None:
    step.losses += 1
    if step.losses >= LOSSES_MAX:
        fail(draft, step, Fault("worker_lost", f"{step.losses} workers died while they ran this step"))
    else:
        # What a provider was asked for may still run there, so its place is kept.
        draft.enqueue(step, payload={"because": "worker_lost"}, keeps_slot=True)
