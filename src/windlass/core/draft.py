"""A job as it was loaded, and what has been decided about it so far.

The deciders (`settle`, `route`, `wake`, `end`, …) work on a Draft; the shell then writes the draft in one commit, on
the condition that the job's version is still the one that was loaded. Nothing here knows how that is done.

    load ──► Draft ──► decide ──► changed steps, job, events, bells ──► one commit
                                   (or, if the version moved: load again)

Only the steps that a decision can touch are loaded: those reported on, and the nodes that depend on them
(`touched_by`). A decision that ends the whole job does not need the steps at all: it asks for a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from windlass.core.hold import NO_HOLD, Hold
from windlass.core.outcome import Cost, Fault
from windlass.core.plan import TTL_S, Plan
from windlass.core.states import (
    JOB_TERMINAL,
    JobState,
    StepState,
    check_job_move,
    check_step_move,
)
from windlass.core.wait import Wait, WaitKind, waiting_for

_STEP_EVENTS = {state: f"step.{state.lower()}" for state in StepState}
_JOB_EVENTS = {state: f"job.{state.lower()}" for state in JobState}


@dataclass(slots=True)
class Step:
    """One step's row, as far as decisions read or change it."""

    no: int
    node: int
    index: int | None
    state: StepState
    unmet: int
    attempt: int
    failures: int
    losses: int
    fan: int | None = None
    fanned: int | None = None
    # What a PARKED step waits for, and until when.
    wait: Wait | None = None
    wake_at: datetime | None = None
    output: str | None = None
    error: Fault | None = None
    # The worker that runs the attempt.
    worker: UUID | None = None
    # The queue that it waits in; None: not read, so its node's. Only the twins (core/queue.py) are written.
    queue: str | None = None
    # Why a HELD step may not be claimed yet; empty in any other state.
    holds: Hold = NO_HOLD

    @property
    def waiting_for(self) -> str | None:
        """What people are shown that the step waits for: the names of its holds, or its wait."""
        return waiting_for(self.wait, self.holds)

    @property
    def waits_outside(self) -> bool:
        """Whether the step is PARKED until a report from outside comes."""
        return self.state is StepState.PARKED and self.wait is not None and self.wait.is_outside

    @property
    def waits_for_provider(self) -> bool:
        """Whether the step is PARKED for work that a provider or a callback does."""
        return self.state is StepState.PARKED and self.wait is not None and self.wait.kind is WaitKind.EXTERNAL

    @property
    def is_child(self) -> bool:
        """Whether this is one of a fan-out's children."""
        return self.index is not None


@dataclass(slots=True)
class Job:
    """The job's row, as far as decisions read or change it."""

    id: UUID
    state: JobState
    is_paused: bool
    version: int
    steps_total: int
    steps_open: int
    steps_failed: int
    error: Fault | None = None
    # The parent's job, step and attempt, if a step of another job started this one.
    parent: tuple[UUID, int, int] | None = None
    correlation_id: str | None = None
    # When the job expires, if that is its recipe's default: a longer wait moves it. None: it stands.
    expires_at: datetime | None = None


class Event(NamedTuple):
    """Something that happened to a job or to one of its steps; its sequence number is given when it is written."""

    type: str
    source: str
    no: int | None = None
    attempt: int | None = None
    payload: dict[str, Any] | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class NewChild:
    """A step that a fan-out adds; `item` is JSON text."""

    no: int
    index: int
    item: str
    state: StepState


@dataclass(frozen=True, slots=True)
class NewJob:
    """A child job that a step starts; the shell fills in its id and rows."""

    no: int
    attempt: int
    index: int | None
    recipe: str
    inputs: dict[str, Any]


@dataclass(slots=True)
class Draft:
    """The job, its loaded steps, and the changes."""

    job: Job
    plan: Plan
    steps: dict[int, Step]
    now: datetime
    source: str = "engine"
    # Steps that were not read but remembered from their claim, with the attempt that must still be running, on the
    # worker that claimed it.
    fences: dict[int, int] | None = None
    changed: dict[int, Step] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    # Fan-out children to add, per fan-out node.
    children: dict[int, list[NewChild]] | None = None
    child_jobs: tuple[NewJob, ...] = ()
    # Of steps that stand in line: their concurrency keys. Of steps that wait for an event: what it must hold.
    keys: dict[int, str] = field(default_factory=dict)
    matches: dict[int, str] = field(default_factory=dict)
    # What providers call the work they were given.
    external_ids: dict[int, str] = field(default_factory=dict)
    # Steps that waited for an answer from outside and will be tried again without it.
    given_up: frozenset[int] = frozenset()
    costs: list[tuple[Step, Cost]] = field(default_factory=list)
    # Set when every step that is still open is to be cancelled.
    sweep: bool = False
    queues: frozenset[str] = frozenset()
    is_moved: bool = False
    has_ready: bool = False
    # Whether the line has changed: someone joined it, left it, or gave back what others wait for.
    has_line: bool = False
    wakes_at: datetime | None = None
    # Whether `job.expires_at` has moved.
    is_prolonged: bool = False
    # The correlation id of the request that asked for this, for the draft's events; None: the job's own.
    correlation_id: str | None = None

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.events)

    @property
    def is_finished(self) -> bool:
        """Whether the job is in a terminal state."""
        return self.job.state in JOB_TERMINAL

    def move_step(
        self,
        step: Step,
        target: StepState,
        *,
        payload: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Change a step's state, as the table allows, and say so in an event."""
        check_step_move(step.state, target)
        step.state = target
        self.changed[step.no] = step
        if self.plan.is_slotted and self.plan.nodes[step.node].is_slotted:
            self.has_line = True
        self.events.append(Event(_STEP_EVENTS[target], self.source, step.no, step.attempt, payload, idempotency_key))

    def move_job(self, target: JobState, *, payload: dict[str, Any] | None = None) -> None:
        """Change the job's state, as the table allows, and say so in an event."""
        check_job_move(self.job.state, target)
        self.job.state = target
        self.is_moved = True
        self.events.append(Event(_JOB_EVENTS[target], self.source, payload=payload))

    def note(self, type: str, step: Step, payload: dict[str, Any]) -> None:
        """Say something of a step that is not a move."""
        self.events.append(Event(type, self.source, step.no, step.attempt, payload))

    def admit(self, step: Step, *, payload: dict[str, Any] | None = None, keeps_slot: bool = False) -> None:
        """Let workers claim the step once nothing holds it. `keeps_slot`: it has its place already."""
        step.wait = step.wake_at = None
        holds = Hold.PAUSED if self.job.is_paused else NO_HOLD
        if not keeps_slot or holds:
            holds |= self._slot(step)
        self._set_holds(step, holds, payload)

    def hold(self, step: Step, hold: Hold) -> bool:
        """Add a hold to a QUEUED or HELD step. Its place is given back: a held step holds no resource."""
        if step.state not in (StepState.QUEUED, StepState.HELD) or hold in step.holds:
            return False
        is_routed = Hold.ROUTE not in step.holds
        self._set_holds(step, step.holds | hold | (self._slot(step) if is_routed else NO_HOLD))
        return True

    def release(self, step: Step, hold: Hold) -> bool:
        """Remove a hold from a HELD step; the last one lets it go on."""
        if step.state is not StepState.HELD or hold not in step.holds:
            return False
        self._set_holds(step, step.holds & ~hold)
        return True

    def _slot(self, step: Step) -> Hold:
        return Hold.SLOT if self.plan.is_slotted and self.plan.nodes[step.node].is_slotted else NO_HOLD

    def _set_holds(self, step: Step, holds: Hold, payload: dict[str, Any] | None = None) -> None:
        """The one place that a step becomes QUEUED, HELD, or READY after a hold."""
        if holds == Hold.ROUTE:
            step.holds, self.has_ready = NO_HOLD, True
            self.move_step(step, StepState.READY, payload=payload)
            return
        step.holds = holds
        if holds:
            self.move_step(step, StepState.HELD, payload={**(payload or {}), "holds": holds.names})
            return
        if self.job.state is JobState.PENDING:
            self.move_job(JobState.QUEUED)
        self.queues |= {step.queue or self.plan.nodes[step.node].queue}
        self.move_step(step, StepState.QUEUED, payload=payload)

    def make_ready(self, step: Step) -> None:
        """All that the step needs is done: workers may claim it, or the router must look at it first."""
        if self.plan.nodes[step.node].is_routed and not step.is_child:
            self.has_ready = True
            self.move_step(step, StepState.READY)
        else:
            self.admit(step)

    def park(self, step: Step, wait: Wait, until: datetime | None, **payload: Any) -> None:
        """Let the step wait; a timer takes it up again at `until`. The job does not expire before, by default."""
        step.wait = wait
        step.wake_at = until
        if until is not None and (self.wakes_at is None or until < self.wakes_at):
            self.wakes_at = until
        if until is not None:
            self.outlive(until)
        timed = {} if until is None else {"until": until}
        self.move_step(step, StepState.PARKED, payload={"waiting_for": str(wait), **timed, **payload})

    def outlive(self, until: datetime) -> None:
        """Move a default expiry that would come before this time."""
        if self.job.expires_at is not None and self.job.expires_at <= until:
            self.job.expires_at = until + timedelta(seconds=TTL_S)
            self.is_prolonged = True


def touched_by(plan: Plan, no: int, node: int, *, is_success: bool) -> set[int]:
    """The numbers of the steps that an outcome of this step can change.

    Success touches the direct dependents. A failure may abandon all that come after. A fan-out's child touches the
    fan-out, whose end may be either.
    """
    if no != node:
        return {no, node} | plan.descendants[node]
    if is_success:
        return {no, *plan.successors[node]}
    return {no} | plan.descendants[node]
