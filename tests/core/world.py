"""A job in memory, moved only by the law: what the property tests drive, and the unit tests build their cases with.

It does what the store does with a draft, and no more: the changed steps are put back, a sweep cancels what is open,
children are added. So every fault here is a fault of the core.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from windlass.core import route as routing
from windlass.core.birth import births
from windlass.core.draft import Draft, Event, Job, Step, passes_over, touched_by
from windlass.core.effect import AddChildren
from windlass.core.outcome import Fault, Outcome, Report, Success
from windlass.core.plan import Node, NodeKind, OnFailure, Plan
from windlass.core.settle import settle
from windlass.core.slot import grant
from windlass.core.states import (
    JOB_TERMINAL,
    STEP_DONE,
    STEP_TERMINAL,
    JobState,
    StepState,
    check_job_move,
    check_step_move,
)

S = StepState
JOB = UUID(int=1)
START = datetime(2030, 1, 1, tzinfo=UTC)
OUTPUT = "1"
_JOB_WORDS, _STEP_WORDS = set(map(str, JobState)), set(map(str, StepState))
BOOM = Fault("boom", "it broke")


def plan(*nodes: Node, on_failure: OnFailure = OnFailure.FINISH) -> Plan:
    return Plan("r", nodes, on_failure=on_failure)


def task(name: str, *needs: str, **given: Any) -> Node:
    return Node(name, run=given.pop("run", name), needs=needs, **given)


def timer(name: str, *needs: str) -> Node:
    return Node(name, NodeKind.TIMER, needs=needs, with_={"seconds": 5})


def child(name: str, *needs: str, **given: Any) -> Node:
    return Node(name, NodeKind.RECIPE, run="other", needs=needs, **given)


def event(name: str, *needs: str, **given: Any) -> Node:
    return Node(name, NodeKind.EVENT, run=given.pop("run", name), needs=needs, **given)


@dataclass
class World:
    """One job. `events` is everything that ever happened to it."""

    plan: Plan
    job: Job
    steps: dict[int, Step]
    now: datetime = START
    events: list[Event] = field(default_factory=list)

    @classmethod
    def of(cls, *nodes: Node, on_failure: OnFailure = OnFailure.FINISH) -> World:
        return cls.of_plan(plan(*nodes, on_failure=on_failure))

    @classmethod
    def of_plan(cls, plan: Plan) -> World:
        steps = {no: Step(no, no, None, start.state, start.unmet, 0, 0, 0) for no, start in enumerate(births(plan))}
        return cls(plan, Job(JOB, JobState.QUEUED, False, 0, len(steps), len(steps), 0), steps)

    def step(self, name: str, index: int | None = None) -> Step:
        node = self.plan.number[name]
        return next(step for step in self.steps.values() if step.node == node and step.index == index)

    def states(self) -> dict[str, StepState]:
        return {self.plan.nodes[s.node].name: s.state for s in self.steps.values() if s.index is None}

    def draft(self, numbers: set[int] | None = None, source: str = "engine") -> Draft:
        """A draft with these steps loaded, or with all."""
        loaded = {no: deepcopy(s) for no, s in self.steps.items() if numbers is None or no in numbers}
        return Draft(deepcopy(self.job), self.plan, loaded, self.now, source)

    def put(self, draft: Draft) -> None:
        """Write the draft, as the store would."""
        if not draft.is_changed:
            assert not draft.changed and not draft.effects, "a change without an event"
            return
        self.job = draft.job
        for no, step in draft.changed.items():
            # The store writes a changed step without its worker, and an ended step with the time of the write.
            assert step.state is not S.RUNNING, "a running step would lose its worker"
            assert self.steps[no].state not in STEP_TERMINAL, "an ended step would end again"
        self.steps.update(draft.changed)
        for added in draft.effects_of(AddChildren):
            state = S.READY if self.plan.nodes[added.fan].is_child_routed else S.QUEUED
            for new in added.children:
                assert new.no not in self.steps, "a number given twice"
                self.steps[new.no] = Step(new.no, added.fan, new.index, state, 0, 0, 0, 0)
        self.events += draft.events
        if draft.is_swept:
            for no in sorted(self.steps):
                if self.steps[no].state not in STEP_TERMINAL:
                    self.steps[no].state = S.CANCELLED
                    self.events.append(Event("step.cancelled", draft.source, no, self.steps[no].attempt))

    def claim(self, step: Step) -> int:
        """What the claim statement does; returns the attempt."""
        assert not self.job.is_paused and self.job.state not in JOB_TERMINAL
        check_step_move(step.state, S.RUNNING)
        step.state, step.attempt = S.RUNNING, step.attempt + 1
        if self.job.state in (JobState.QUEUED, JobState.DISPATCHING):
            self.job.state = JobState.PROCESSING
            self.events.append(Event("job.processing", "worker"))
        self.events.append(Event("step.running", "worker", step.no, step.attempt))
        return step.attempt

    def report(self, step: Step, outcome: Outcome, *, attempt: int | None = None, spread: float = 0.0) -> bool:
        """Settle a report with only those steps loaded that the law says it can touch."""
        report = Report(JOB, step.no, step.attempt if attempt is None else attempt, outcome)
        touched = touched_by(self.plan, step.no, step.node, is_success=isinstance(outcome, Success))
        draft = self.draft(touched)
        if passes_over(draft):
            draft = self.draft()
        took_effect = settle(draft, report, spread)
        whole = self.draft()
        assert settle(whole, report, spread) == took_effect
        assert (whole.events, whole.changed, whole.job) == (draft.events, draft.changed, draft.job)
        self.put(draft)
        return took_effect

    def run(self, name: str, outcome: Outcome | None = None, index: int | None = None) -> bool:
        """Claim a step and report on it: success unless said otherwise."""
        step = self.step(name, index)
        self.claim(step)
        return self.report(step, outcome or Success(OUTPUT))

    def route(self, name: str, resolution: routing.Resolution, index: int | None = None) -> bool:
        step = self.step(name, index)
        draft = self.draft(touched_by(self.plan, step.no, step.node, is_success=False))
        done = routing.route(draft, step.no, resolution)
        self.put(draft)
        return done

    def grant(self, name: str, index: int | None = None) -> bool:
        step = self.step(name, index)
        draft = self.draft({step.no})
        done = grant(draft, step.no)
        self.put(draft)
        return done

    def wake(self, step: Step) -> bool:
        draft = self.draft(touched_by(self.plan, step.no, step.node, is_success=False))
        done = routing.wake(draft, step.no)
        self.put(draft)
        return done

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @property
    def is_finished(self) -> bool:
        return self.job.state in JOB_TERMINAL

    def check(self) -> None:
        """What must hold after every action."""
        still_open = [s for s in self.steps.values() if s.state not in STEP_TERMINAL]
        assert self.job.steps_open == len(still_open)
        assert self.job.steps_total == len(self.steps)
        assert (self.job.steps_open == 0) == self.is_finished
        for step in self.steps.values():
            needs = [self.steps[self.plan.number[name]] for name in self.plan.nodes[step.node].needs]
            if step.index is None and step.fan is None and step.state not in STEP_TERMINAL:
                assert step.unmet == sum(need.state not in STEP_DONE for need in needs)
            if step.state in (S.READY, S.HELD, S.QUEUED, S.RUNNING, S.PARKED) or step.state in STEP_DONE:
                assert all(need.state in STEP_DONE for need in needs), "it started before all it needs was done"
        if self.job.state is JobState.COMPLETED:
            assert {step.state for step in self.steps.values()} <= STEP_DONE
        assert self.replayed() == {no: step.state for no, step in self.steps.items()}

    def replayed(self) -> dict[int, StepState]:
        """The states that the events alone lead to; every move on the way must be in the tables."""
        states = {no: start.state for no, start in enumerate(births(self.plan))}
        job = JobState.QUEUED
        for event in self.events:
            noun, _, what = event.type.partition(".")
            if noun == "job" and what.upper() in _JOB_WORDS:
                check_job_move(job, JobState(what.upper()))
                job = JobState(what.upper())
            elif what == "fanned":
                assert event.no is not None and event.payload is not None
                first = S.READY if self.plan.nodes[event.no].is_child_routed else S.QUEUED
                numbers = range(event.payload["first"], event.payload["first"] + event.payload["count"])
                states.update(dict.fromkeys(numbers, first))
            elif noun == "step" and what.upper() in _STEP_WORDS:
                assert event.no is not None
                check_step_move(states[event.no], StepState(what.upper()))
                states[event.no] = StepState(what.upper())
        assert job is self.job.state
        return states
