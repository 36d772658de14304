"""A draft: a job as it was loaded, and the decisions made about it so far.

The deciders (`settle`, `route`, `wake`, `end`, …) change a Draft. The store then writes it in one commit, if the job's
version is still the loaded version. Nothing in this module knows how the store does that.

    load ──► Draft ──► decide ──► changed steps, job, events, effects, bells ──► one commit
                                   (or, if the version moved: load again)

A draft loads only the steps that a decision can change: the reported steps and the nodes that depend on them
(`touched_by`). A decision that ends the whole job needs no steps: it requests a sweep (`core/effect.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from windlass.core.effect import Effect, MoveExpiry, StartUndo, Sweep
from windlass.core.event import EventType
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.outcome import Fault
from windlass.core.plan import TTL_S, Plan
from windlass.core.states import (
    JOB_TERMINAL,
    STEP_TERMINAL,
    JobState,
    StepState,
    check_job_move,
    check_step_move,
)
from windlass.core.wait import Wait, WaitKind, waiting_for

E = TypeVar("E", bound=Effect)

_STEP_EVENTS = {state: EventType(f"step.{state.lower()}") for state in StepState}
_JOB_EVENTS = {state: EventType(f"job.{state.lower()}") for state in JobState}


@dataclass(slots=True)
class Step:
    """The columns of a step's row that decisions read or change."""

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
    # The wait of a PARKED step, and its end.
    wait: Wait | None = None
    wake_at: datetime | None = None
    output: str | None = None
    error: Fault | None = None
    # The worker that runs the attempt.
    worker: UUID | None = None
    # The queue of the step. None: the store did not read it, so the node's queue applies. `requeue` changes it.
    queue: str | None = None
    is_requeued: bool = False
    # The reasons why a HELD step may not be claimed yet; empty in any other state.
    holds: Hold = NO_HOLD

    @property
    def waiting_for(self) -> str | None:
        """The step's wait as people see it: the names of its holds, or its wait."""
        return waiting_for(self.wait, self.holds)

    @property
    def waits_outside(self) -> bool:
        """Return whether the step is PARKED until a report from outside arrives."""
        return self.state is StepState.PARKED and self.wait is not None and self.wait.is_outside

    @property
    def waits_for_provider(self) -> bool:
        """Return whether the step is PARKED for the work of a provider or a callback."""
        return self.state is StepState.PARKED and self.wait is not None and self.wait.kind is WaitKind.EXTERNAL

    @property
    def is_child(self) -> bool:
        """Return whether the step is a child of a fan-out."""
        return self.index is not None


@dataclass(slots=True)
class Job:
    """The columns of a job's row that decisions read or change."""

    id: UUID
    state: JobState
    is_paused: bool
    version: int
    steps_total: int
    steps_open: int
    steps_failed: int
    error: Fault | None = None
    # The job, step and attempt that started this job, if it is a child job.
    parent: tuple[UUID, int, int] | None = None
    correlation_id: str | None = None
    # The job's default expiry, which a longer wait moves. None: the expiry was chosen and stays.
    expires_at: datetime | None = None
    # The code of the fault of the step that failed first; it decides how the job ends.
    failure_code: str | None = None
    # The policy's limit for the attempts of each step.
    attempts_max: int | None = None


class Event(NamedTuple):
    """An event of a job or of one of its steps. The store assigns its sequence number."""

    type: EventType
    source: str
    no: int | None = None
    attempt: int | None = None
    payload: dict[str, Any] | None = None
    idempotency_key: str | None = None


@dataclass(slots=True)
class Draft:
    """The job, its loaded steps, and their changes."""

    job: Job
    plan: Plan
    steps: dict[int, Step]
    now: datetime
    source: str = "engine"
    # Steps that were not loaded but remembered from their claim, with their attempts. The write requires that each
    # attempt still runs on the worker that claimed it.
    fences: dict[int, int] | None = None
    changed: dict[int, Step] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    # The contents of the bells after the commit: queues with new work, whether the router has work, the next timer.
    queues: frozenset[str] = frozenset()
    has_ready: bool = False
    wakes_at: datetime | None = None
    is_moved: bool = False
    # The correlation id of the request, for the draft's events; None: the job's own.
    correlation_id: str | None = None
    # Whether the effects of the job's steps stay if the job ends badly.
    keeps_effects: bool = False

    @property
    def is_changed(self) -> bool:
        """Return whether there is anything to write."""
        return bool(self.events)

    @property
    def is_finished(self) -> bool:
        """Return whether the job is in a terminal state."""
        return self.job.state in JOB_TERMINAL

    @property
    def is_swept(self) -> bool:
        """Return whether a sweep cancels every step that is still open."""
        return bool(self.effects) and Sweep() in self.effects

    @property
    def is_slotted(self) -> bool:
        """Return whether the draft, or its sweep, may change a step that needs a slot."""
        slotted = self.plan.slotted
        if not slotted:
            return False
        return self.is_swept or not slotted.isdisjoint([step.node for step in self.changed.values()])

    def effects_of(self, kind: type[E]) -> list[E]:
        """Return the effects of one kind, in the order in which they were added."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def move_step(
        self,
        step: Step,
        target: StepState,
        *,
        payload: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Change a step's state, if the table allows the move, and add an event."""
        check_step_move(step.state, target)
        step.state = target
        self.changed[step.no] = step
        self.events.append(Event(_STEP_EVENTS[target], self.source, step.no, step.attempt, payload, idempotency_key))

    def move_job(self, target: JobState, *, payload: dict[str, Any] | None = None) -> None:
        """Change the job's state, if the table allows the move, and add an event."""
        check_job_move(self.job.state, target)
        has_completed = JobState.COMPLETED in (self.job.state, target)
        self.job.state = target
        self.is_moved = True
        if target in JOB_TERMINAL and not has_completed and self.plan.may_undo:
            # Every end of a job passes here, so no end can forget the undo. An output that is quarantined after the job
            # has completed takes nothing back.
            self.effects.append(StartUndo())
        self.events.append(Event(_JOB_EVENTS[target], self.source, payload=payload))

    def note(self, type: EventType, step: Step, payload: dict[str, Any]) -> None:
        """Add an event about a step that is not a move."""
        self.events.append(Event(type, self.source, step.no, step.attempt, payload))

    def admit(self, step: Step, *, payload: dict[str, Any] | None = None, keeps_slot: bool = False) -> None:
        """Let workers claim the step once nothing holds it. `keeps_slot`: the step already has its slot."""
        step.wait = step.wake_at = None
        holds = Hold.PAUSED if self.job.is_paused else NO_HOLD
        if not keeps_slot or holds:
            holds |= self._slot(step)
        self._set_holds(step, holds, payload)

    def hold(self, step: Step, hold: Hold) -> bool:
        """Add a hold to a QUEUED or HELD step. The step gives its slot back: a held step holds no resource."""
        if step.state not in (StepState.QUEUED, StepState.HELD) or hold in step.holds:
            return False
        is_routed = Hold.ROUTE not in step.holds
        self._set_holds(step, step.holds | hold | (self._slot(step) if is_routed else NO_HOLD))
        return True

    def withhold(self, step: Step, hold: Hold) -> bool:
        """Add a hold, also to a READY step. The router resolves such a step after its last hold is removed."""
        if step.state is not StepState.READY:
            return self.hold(step, hold)
        self._set_holds(step, Hold.ROUTE | hold)
        return True

    def release(self, step: Step, hold: Hold) -> bool:
        """Remove a hold from a HELD step. Removing the last hold queues the step."""
        if step.state is not StepState.HELD or hold not in step.holds:
            return False
        self._set_holds(step, step.holds & ~hold)
        return True

    def _slot(self, step: Step) -> Hold:
        return Hold.SLOT if self.plan.is_slotted and self.plan.nodes[step.node].is_slotted else NO_HOLD

    def _set_holds(self, step: Step, holds: Hold, payload: dict[str, Any] | None = None) -> None:
        """Set the holds and the state that follows from them. Only this method makes a step QUEUED or HELD."""
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

    def requeue(self, step: Step, queue: str) -> None:
        """Move the step to this queue. Call it before the step becomes QUEUED, because the bell names the queue."""
        step.queue, step.is_requeued = queue, True
        self.changed[step.no] = step

    def make_ready(self, step: Step) -> None:
        """Release a step whose dependencies are done: to the workers, or to the router if it must be resolved first."""
        if self.plan.nodes[step.node].is_routed and not step.is_child:
            self.has_ready = True
            self.move_step(step, StepState.READY)
        else:
            self.admit(step)

    def park(self, step: Step, wait: Wait, until: datetime | None, **payload: Any) -> None:
        """Let the step wait; a timer wakes it at `until`. A default expiry of the job moves beyond `until`."""
        step.wait = wait
        step.wake_at = until
        if until is not None and (self.wakes_at is None or until < self.wakes_at):
            self.wakes_at = until
        if until is not None:
            self.outlive(until)
        timed = {} if until is None else {"until": until}
        self.move_step(step, StepState.PARKED, payload={"waiting_for": str(wait), **timed, **payload})

    def outlive(self, until: datetime) -> None:
        """Move a default expiry that is due at or before this time."""
        if self.job.expires_at is not None and self.job.expires_at <= until:
            self.job.expires_at = until + timedelta(seconds=TTL_S)
            self.effects.append(MoveExpiry(self.job.expires_at))


def touched_by(plan: Plan, no: int, node: int, *, is_success: bool) -> set[int]:
    """Return the numbers of the steps that an outcome of this step can change.

    Success changes the direct dependents. A failure may abandon all descendants. A child of a fan-out changes the
    fan-out, which may then succeed or fail. Every end changes the nodes that follow. If one of them has ended, the
    turn passes over it, and all steps of the job must be loaded (`passes_over`).
    """
    if no != node:
        return {no, node} | plan.descendants[node]
    if is_success:
        return {no, *plan.successors[node], *plan.followers[node]}
    # In an undo a failure abandons nodes, and the turn then passes over any number of them.
    return set(range(len(plan.nodes))) if plan.is_undo else {no} | plan.descendants[node]


def passes_over(draft: Draft) -> bool:
    """Return whether a turn may pass over steps that have ended, so that the decision needs all steps of the job."""
    return draft.plan.is_undo and any(step.state in STEP_TERMINAL for step in draft.steps.values())
