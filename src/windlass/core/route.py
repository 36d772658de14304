"""Applies a resolved condition, fan-out, timer, child recipe, event or question to its READY step, and wakes steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, assert_never
from uuid import UUID

from windlass.core.approval import APPROVAL_EXPIRED, ApprovalRequest, ApprovalState
from windlass.core.birth import born
from windlass.core.draft import Draft, Event, Step
from windlass.core.effect import AddChildren, ExpectEvent, NewChild, RequestApproval, StartJob, UseKey
from windlass.core.event import EventType
from windlass.core.graph import complete, fail, finish_fan, skip
from windlass.core.outcome import WAIT_TIMEOUT, Failure, Fault
from windlass.core.plan import NodeKind
from windlass.core.settle import failed
from windlass.core.states import JobState, StepState
from windlass.core.wait import Wait, WaitKind

# One commit adds at most this many children; a larger fan-out takes several commits.
FAN_BATCH_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Skip:
    """The condition is false."""


@dataclass(frozen=True, slots=True)
class Run:
    """The condition holds: queue the step for a worker. `key` is its concurrency key, `queue` replaces its queue."""

    key: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Fan:
    """The next batch of a fan-out: items as JSON texts, the index of the first item, and the number of all items."""

    items: tuple[str, ...]
    start: int
    total: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """A timer and its length."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """A child job and its resolved inputs."""

    inputs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Await:
    """An event wait. The event must contain `match` (JSON text); `early` is the body of an event already received."""

    match: str
    early: str | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to people. `request` is None until the engine has read the rows that it is about."""

    id: UUID
    question: str
    arguments: str
    request: ApprovalRequest | None = None


@dataclass(frozen=True, slots=True)
class Unresolvable:
    """The expression has no value, and another attempt would not help."""

    fault: Fault


Resolution = Skip | Run | Fan | Sleep | Call | Await | Ask | Unresolvable


def route(draft: Draft, no: int, resolution: Resolution) -> bool:
    """Apply the resolution to a READY step. Return False if the step is not READY or the job is paused or finished."""
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
                draft.effects.append(UseKey(no, resolution.key))
            if resolution.queue is not None:
                draft.requeue(step, resolution.queue)
            draft.admit(step)
        case Fan():
            _fan_out(draft, step, resolution)
        case Sleep():
            draft.park(step, Wait(WaitKind.TIMER), draft.now + timedelta(seconds=resolution.seconds))
        case Call():
            _call(draft, step, resolution)
        case Await():
            _await(draft, step, resolution)
        case Ask():
            _ask(draft, step, resolution)
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
        draft.effects.append(AddChildren(fan.no, tuple(added)))
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
        # The fan-out stays READY, so the router returns for the rest.
        draft.has_ready = True
        draft.note(EventType.STEP_FANNED, fan, span)
        return
    draft.note(EventType.STEP_FANNED, fan, span)
    draft.park(fan, Wait(WaitKind.FAN), None)
    if fan.unmet == 0:
        finish_fan(draft, fan)


def _call(draft: Draft, step: Step, call: Call) -> None:
    # A child job reports to an attempt, like external work. No worker claims this step, so its attempt begins here.
    step.attempt += 1
    node = draft.plan.nodes[step.node]
    draft.effects.append(StartJob(step.no, step.attempt, step.index, node.run, call.inputs))
    draft.park(step, Wait(WaitKind.CHILD), None, recipe=node.run)


def _await(draft: Draft, step: Step, awaited: Await) -> None:
    # The sender of the event reports to this attempt, as a child job does.
    step.attempt += 1
    if awaited.early is not None:
        complete(draft, step, awaited.early)
        return
    node = draft.plan.nodes[step.node]
    draft.effects.append(ExpectEvent(step.no, awaited.match))
    until = None if node.wait_s is None else draft.now + timedelta(seconds=node.wait_s)
    draft.park(step, Wait(WaitKind.EVENT, node.run), until)


def _ask(draft: Draft, step: Step, ask: Ask) -> None:
    # No worker claims this step, so its attempt begins here.
    step.attempt += 1
    assert ask.request is not None
    request = replace(ask.request, no=step.no, attempt=step.attempt)
    draft.effects.append(RequestApproval(ask.id, request))
    draft.park(step, Wait(WaitKind.APPROVAL, str(ask.id)), request.expires_at(draft.now))
    told = {
        "approval": str(ask.id),
        "no": step.no,
        "step": draft.plan.nodes[step.node].name,
        "need": request.terms.need,
    }
    draft.events.append(Event(EventType.APPROVAL_REQUESTED, draft.source, payload=told))


def _expire(draft: Draft, step: Step, wait: Wait) -> None:
    """Fail a step whose approval was not given in time."""
    told = {"approval": wait.name, "no": step.no, "state": ApprovalState.EXPIRED}
    draft.events.append(Event(EventType.APPROVAL_DECIDED, draft.source, payload=told))
    fault = Fault(APPROVAL_EXPIRED, "the approval was not given in time")
    failed(draft, step, Failure(fault, is_retryable=False))


def wake(draft: Draft, no: int) -> bool:
    """Wake a PARKED step that is due: run a retry or a snooze, complete a timer, time out an outside wait."""
    step = draft.steps.get(no)
    if step is None or draft.is_finished or step.state is not StepState.PARKED:
        return False
    if step.wake_at is None or step.wake_at > draft.now:
        return False
    node = draft.plan.nodes[step.node]
    kind = step.wait.kind if step.wait is not None else None
    if kind is WaitKind.TIMER:
        complete(draft, step, "null")
    elif kind is WaitKind.APPROVAL and step.wait is not None:
        _expire(draft, step, step.wait)
    elif step.waits_outside:
        fault = Fault(WAIT_TIMEOUT, f"no report for {step.wait} arrived in time")
        # A provider may succeed at the next attempt. A person or a child job already had the whole time.
        failed(draft, step, Failure(fault, is_retryable=bool(node.provider)))
    elif node.kind is NodeKind.TASK:
        draft.admit(step)
    else:
        step.wake_at = step.wait = None
        draft.has_ready = True
        draft.move_step(step, StepState.READY)
    return True
