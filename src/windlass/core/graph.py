"""Advances a job's graph: done steps make dependents ready, failed steps abandon them, the last step ends the job."""

from __future__ import annotations

from dataclasses import replace

from windlass.core.draft import Draft, Step
from windlass.core.effect import Sweep
from windlass.core.outcome import DENIALS, TIMEOUTS, Fault
from windlass.core.plan import OnFailure
from windlass.core.states import JobState, StepState

UNDO_FAILED = "undo_failed"
# The fault of an undo job names at most this many standing effects.
STANDS_SHOWN_MAX = 20


def complete(draft: Draft, step: Step, output: str | None, *, idempotency_key: str | None = None) -> None:
    """Complete the step and make the dependents ready that waited only for it."""
    step.output = output
    step.wait = step.wake_at = None
    draft.move_step(step, StepState.COMPLETED, idempotency_key=idempotency_key)
    _settled(draft, step)


def skip(draft: Draft, step: Step) -> None:
    """Skip a step whose condition is false. A skipped step counts as done."""
    step.output = '{"skipped":true}'
    draft.move_step(step, StepState.SKIPPED)
    _settled(draft, step)


def fail(draft: Draft, step: Step, fault: Fault, *, idempotency_key: str | None = None) -> None:
    """Fail the step for good, and abandon the steps that need it. A step that the policy does not allow is DENIED."""
    step.error = fault
    step.wait = step.wake_at = None
    is_denied = fault.code in DENIALS
    state = StepState.DENIED if is_denied else StepState.FAILED
    draft.move_step(step, state, payload={"error": fault.as_json()}, idempotency_key=idempotency_key)
    # A job ends as its worst step.
    if not draft.job.steps_failed or is_denied:
        draft.job.failure_code = fault.code
    draft.job.steps_failed += 1
    named = replace(fault, step=draft.plan.nodes[step.node].name)
    if draft.plan.is_undo:
        named = _not_undone(draft, step, named)
        draft.job.failure_code = named.code
    if draft.job.error is None:
        draft.job.error = named
    if draft.plan.on_failure is OnFailure.STOP:
        end(draft, _failed_state(draft), named)
        return
    if not step.is_child:
        _abandon_dependents(draft, step)
    _settled(draft, step)


def end(draft: Draft, state: JobState, fault: Fault | None = None) -> None:
    """End the job now and sweep all steps that are still open."""
    if fault is not None and draft.job.error is None:
        draft.job.error = fault
    # The sweep includes open steps that this draft changed.
    draft.effects.append(Sweep())
    draft.job.steps_open = 0
    draft.move_job(state, payload={"error": fault.as_json()} if fault is not None else None)


def _settled(draft: Draft, step: Step) -> None:
    draft.job.steps_open -= 1
    if step.is_child:
        has_failed = step.state in (StepState.FAILED, StepState.DENIED)
        _child_settled(draft, draft.steps[step.node], has_failed)
    elif step.state in (StepState.COMPLETED, StepState.SKIPPED):
        for no in draft.plan.successors[step.node]:
            after = draft.steps[no]
            if after.state is not StepState.BLOCKED:
                # The dependent was abandoned before; a write would give it a second end.
                continue
            _unblock(draft, after)
    if draft.plan.is_undo:
        _release_followers(draft, step)
    if draft.job.steps_open == 0 and not draft.is_finished:
        draft.move_job(_failed_state(draft) if draft.job.steps_failed else JobState.COMPLETED)


def _unblock(draft: Draft, after: Step) -> None:
    after.unmet -= 1
    draft.changed[after.no] = after
    if after.unmet == 0:
        draft.make_ready(after)


def _release_followers(draft: Draft, step: Step) -> None:
    """Give the turn to the next node. A node that has ended passes its turn on when the turn comes to it, not before:
    an abandoned node, or in a resumed undo a node that was undone before.
    """
    ahead = [step.node]
    while ahead:
        for follower in draft.plan.followers[ahead.pop()]:
            after = draft.steps[follower]
            if after.state is StepState.BLOCKED:
                _unblock(draft, after)
            else:
                ahead.append(follower)


def _not_undone(draft: Draft, step: Step, fault: Fault) -> Fault:
    """Return the fault of an undo job: what failed, and which effects therefore stand."""
    plan = draft.plan
    stands = [step.node, *sorted(plan.descendants[step.node])]
    names = [plan.nodes[no].name for no in stands if plan.nodes[no].undoes is not None]
    more = f" and {len(names) - STANDS_SHOWN_MAX:,} more" if len(names) > STANDS_SHOWN_MAX else ""
    told = f"{fault.step} could not be undone ({fault.code}: {fault.message}); "
    return replace(
        fault, code=UNDO_FAILED, message=f"{told}these effects stand: {', '.join(names[:STANDS_SHOWN_MAX])}{more}"
    )


def _failed_state(draft: Draft) -> JobState:
    """How a job with failed steps ends: as its first failure says, or as a denied step."""
    if draft.job.failure_code in DENIALS:
        return JobState.DENIED
    return JobState.TIMEOUT if draft.job.failure_code in TIMEOUTS else JobState.FAILED


def _child_settled(draft: Draft, fan: Step, has_failed: bool) -> None:
    fan.unmet -= 1
    fan.failures += has_failed
    draft.changed[fan.no] = fan
    if fan.unmet == 0:
        finish_fan(draft, fan)


def finish_fan(draft: Draft, fan: Step) -> None:
    """End a fan-out after its last child: FAILED if any child failed, otherwise COMPLETED."""
    if fan.failures:
        # The failed children are already counted; the fan-out only propagates them.
        fan.error = Fault("children_failed", f"{fan.failures} of {fan.fan} children failed")
        fan.wait = None
        draft.move_step(fan, StepState.FAILED, payload={"error": fan.error.as_json()})
        _abandon_dependents(draft, fan)
        _settled(draft, fan)
    else:
        complete(draft, fan, None)


def _abandon_dependents(draft: Draft, step: Step) -> None:
    # In the order of their numbers, so that equal histories write equal events.
    for no in sorted(draft.plan.descendants[step.node]):
        after = draft.steps[no]
        if after.state is StepState.BLOCKED:
            draft.move_step(after, StepState.ABANDONED, payload={"because": draft.plan.nodes[step.node].name})
            draft.job.steps_open -= 1
