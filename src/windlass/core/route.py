"""What becomes of a step whose condition, fan-out, timer or child recipe the engine has now resolved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from windlass.core.birth import born
from windlass.core.draft import Draft, NewChild, NewJob, Step
from windlass.core.graph import complete, fail, finish_fan, skip
from windlass.core.outcome import Failure, Fault
from windlass.core.plan import NodeKind
from windlass.core.settle import failed
from windlass.core.states import JobState, StepState
from windlass.core.wait import Wait, WaitKind

# One commit adds at most this many children; a larger fan-out takes several.
FAN_BATCH_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Skip:
    """The condition is false."""


@dataclass(frozen=True, slots=True)
class Run:
    """The condition holds: let a worker do it, under this concurrency key if it has one."""

    key: str | None = None


@dataclass(frozen=True, slots=True)
class Fan:
    """The items of the next batch as JSON texts, the first one's index, and how many there are in all."""

    items: tuple[str, ...]
    start: int
    total: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """A timer, with its length."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """A child job, with its resolved inputs."""

    inputs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Await:
    """An event, with what it must hold (JSON text); `early` is the body of one that has come already."""

    match: str
    early: str | None = None


@dataclass(frozen=True, slots=True)
class Unresolvable:
    """The expression has no value; trying again would not help."""

    fault: Fault


Resolution = Skip | Run | Fan | Sleep | Call | Await | Unresolvable


def route(draft: Draft, no: int, resolution: Resolution) -> bool:
    """Apply what was resolved for a READY step; False if the step is no longer READY, or the job paused or over."""
    step = draft.steps.get(no)
    if step is None or draft.is_finished or draft.job.is_paused or step.state is not StepState.READY:
        return False
    if draft.job.state in (JobState.PENDING, JobState.QUEUED):
        if draft.job.state is JobState.PENDING:
            draft.move_job(JobState.QUEUED)
        draft.move_job(JobState.DISPATCHING)
    match resolution:
        case Skip():
            skip(draft, step)
        case Run():
            if resolution.key is not None:
                draft.keys[no] = resolution.key
            draft.admit(step)
        case Fan():
            _fan_out(draft, step, resolution)
        case Sleep():
            draft.park(step, Wait(WaitKind.TIMER), draft.now + timedelta(seconds=resolution.seconds))
        case Call():
            _call(draft, step, resolution)
        case Await():
            _await(draft, step, resolution)
        case Unresolvable():
            step.failures += 1
            fail(draft, step, resolution.fault)
        case _:
            assert_never(resolution)
    return True


def _fan_out(draft: Draft, fan: Step, batch: Fan) -> None:
    if fan.fan is None:
        fan.fan, fan.fanned, fan.unmet = batch.total, 0, batch.total
    if batch.total == 0:
        complete(draft, fan, None)
        return
    if batch.start != fan.fanned:
        return
    first = draft.job.steps_total
    birth = born(draft.plan.nodes[fan.node], is_child=True)
    added = [NewChild(first + i, batch.start + i, item, birth.state) for i, item in enumerate(batch.items)]
    if added:
        draft.children = {**(draft.children or {}), fan.no: added}
    fan.fanned += len(added)
    draft.changed[fan.no] = fan
    draft.job.steps_total += len(added)
    draft.job.steps_open += len(added)
    span = {"first": first, "from": batch.start, "count": len(added), "of": batch.total}
    if birth.state is StepState.READY:
        draft.has_ready = True
    else:
        draft.queues |= {draft.plan.nodes[fan.node].queue}
    if fan.fanned < batch.total:
        # Stays READY: the router comes back for the rest.
        draft.has_ready = True
        draft.note("step.fanned", fan, span)
        return
    draft.note("step.fanned", fan, span)
    draft.park(fan, Wait(WaitKind.FAN), None)
    if fan.unmet == 0:
        finish_fan(draft, fan)


def _call(draft: Draft, step: Step, call: Call) -> None:
    # A child job answers to an attempt like any other work; a worker never claims this step, so it is made here.
    step.attempt += 1
    node = draft.plan.nodes[step.node]
    draft.child_jobs += (NewJob(step.no, step.attempt, step.index, node.run, call.inputs),)
    draft.park(step, Wait(WaitKind.CHILD), None, recipe=node.run)


def _await(draft: Draft, step: Step, awaited: Await) -> None:
    # As for a child job: whoever brings the event answers to this attempt.
    step.attempt += 1
    if awaited.early is not None:
        complete(draft, step, awaited.early)
        return
    node = draft.plan.nodes[step.node]
    draft.matches[step.no] = awaited.match
    until = None if node.wait_s is None else draft.now + timedelta(seconds=node.wait_s)
    draft.park(step, Wait(WaitKind.EVENT, node.run), until)


def wake(draft: Draft, no: int) -> bool:
    """A PARKED step's time has come: a retry or a snooze runs again, a timer is done, a wait outside was too long."""
    step = draft.steps.get(no)
    if step is None or draft.is_finished or step.state is not StepState.PARKED:
        return False
    if step.wake_at is None or step.wake_at > draft.now:
        return False
    node = draft.plan.nodes[step.node]
    kind = step.wait.kind if step.wait is not None else None
    if kind is WaitKind.TIMER:
        complete(draft, step, "null")
    elif step.waits_outside:
        fault = Fault("wait_timeout", f"nothing was heard of {step.wait} in time")
        # A provider may do better next time; a person or a child job was given all the time there was.
        failed(draft, step, Failure(fault, is_retryable=bool(node.provider)))
    elif node.kind is NodeKind.TASK:
        draft.admit(step)
    else:
        step.wake_at = step.wait = None
        draft.has_ready = True
        draft.move_step(step, StepState.READY)
    return True
