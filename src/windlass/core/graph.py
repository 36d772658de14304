"""How a graph moves on: what a finished step makes ready, what a failed one makes impossible, when the job ends."""

from __future__ import annotations

from dataclasses import replace

from windlass.core.draft import Draft, Step
from windlass.core.outcome import Fault
from windlass.core.plan import OnFailure
from windlass.core.states import JobState, StepState


def complete(draft: Draft, step: Step, output: str | None, *, idempotency_key: str | None = None) -> None:
    """The step is done; whatever waited only for it may start."""
    step.output = output
    step.wait = step.wake_at = None
    draft.move_step(step, StepState.COMPLETED, idempotency_key=idempotency_key)
    _settled(draft, step)


def skip(draft: Draft, step: Step) -> None:
    """The step's condition is false; it counts as done."""
    step.output = '{"skipped":true}'
    draft.move_step(step, StepState.SKIPPED)
    _settled(draft, step)


def fail(draft: Draft, step: Step, fault: Fault, *, idempotency_key: str | None = None) -> None:
    """The step has failed for good; nothing that needs it can ever run."""
    step.error = fault
    step.wait = step.wake_at = None
    draft.move_step(step, StepState.FAILED, payload={"error": fault.as_json()}, idempotency_key=idempotency_key)
    draft.job.steps_failed += 1
    named = replace(fault, step=draft.plan.nodes[step.node].name)
    if draft.job.error is None:
        draft.job.error = named
    if draft.plan.on_failure is OnFailure.STOP:
        end(draft, JobState.FAILED, named)
        return
    if not step.is_child:
        _abandon_dependents(draft, step)
    _settled(draft, step)


def end(draft: Draft, state: JobState, fault: Fault | None = None) -> None:
    """The job ends now, whatever its steps were doing; those still open are swept."""
    if fault is not None and draft.job.error is None:
        draft.job.error = fault
    # Steps changed by this very draft and still open are swept with the rest.
    draft.sweep = True
    draft.job.steps_open = 0
    draft.move_job(state, payload={"error": fault.as_json()} if fault is not None else None)


def _settled(draft: Draft, step: Step) -> None:
    draft.job.steps_open -= 1
    if step.is_child:
        _child_settled(draft, draft.steps[step.node], step.state is StepState.FAILED)
    elif step.state in (StepState.COMPLETED, StepState.SKIPPED):
        for no in draft.plan.successors[step.node]:
            after = draft.steps[no]
            if after.state is not StepState.BLOCKED:
                # Abandoned before: a write would give it a new end.
                continue
            after.unmet -= 1
            draft.changed[no] = after
            if after.unmet == 0:
                draft.make_ready(after)
    if draft.job.steps_open == 0 and not draft.is_finished:
        draft.move_job(JobState.FAILED if draft.job.steps_failed else JobState.COMPLETED)


def _child_settled(draft: Draft, fan: Step, has_failed: bool) -> None:
    fan.unmet -= 1
    fan.failures += has_failed
    draft.changed[fan.no] = fan
    if fan.unmet == 0:
        finish_fan(draft, fan)


def finish_fan(draft: Draft, fan: Step) -> None:
    """All children of a fan-out are settled: it is as good as they are."""
    if fan.failures:
        # The children's own failures are already counted; the fan-out only passes them on.
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
