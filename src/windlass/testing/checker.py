"""The history checker: a job's rows and events in, whatever they break out.

One pure function for the tests, the simulation and the chaos run. The events are replayed from the plan's first
states, each move held against the state tables, and what comes out must be what is stored. So the checker knows the
law (`core/states.py`, the plan's graph) but none of the code that is supposed to keep it.

A violation has a rule, which is stable and short, and a sentence for people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from windlass.core.graph import starts
from windlass.core.plan import NodeKind, Plan
from windlass.core.states import (
    JOB_MOVES,
    JOB_TERMINAL,
    STEP_DONE,
    STEP_MOVES,
    STEP_TERMINAL,
    JobState,
    StepState,
)
from windlass.engine.read import EventView, JobView, StepView

# Said of a step without moving it.
NOTES = frozenset({"fanned", "progress", "preview", "checkpoint"})


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that did not hold, of which job, and how."""

    rule: str
    job_id: UUID | None
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {f'job {self.job_id}: ' if self.job_id else ''}{self.message}"


@dataclass(frozen=True, slots=True)
class JobHistory:
    """All that the database knows of a job; events and steps in order."""

    view: JobView
    plan: Plan
    steps: Sequence[StepView]
    events: Sequence[EventView]


def check(history: JobHistory) -> list[Violation]:
    """Everything that must hold of a job at any instant between two commits."""
    replay = _Replay(history)
    replay.run()
    return [*replay.violations, *_stored(history, replay), *_rows(history)]


def check_ended(history: JobHistory) -> list[Violation]:
    """What must hold as well once nothing disturbs the system any more: the job has come to an end."""
    view = history.view
    if view.state in JOB_TERMINAL:
        return []
    return [Violation("not terminal", view.id, f"it is {view.state} with {view.steps_open} steps open")]


@dataclass(slots=True)
class _StepReplay:
    node: int
    state: StepState
    index: int | None = None
    attempt: int = 0


@dataclass
class _Replay:
    """The events' own account of the job."""

    history: JobHistory
    job: JobState = JobState.QUEUED
    is_paused: bool = False
    steps: dict[int, _StepReplay] = field(default_factory=dict)
    fans: dict[int, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def run(self) -> None:
        """Replay every event."""
        plan = self.history.plan
        self.steps = {no: _StepReplay(no, start.state) for no, start in enumerate(starts(plan))}
        for place, event in enumerate(self.history.events, 1):
            if event.seq != place:
                self._break("gap", f"event {place} has the number {event.seq}")
                return
            if (place == 1) != (event.type == "job.submitted"):
                self._break("first event", f"event {place} is {event.type}")
            kind, _, word = event.type.partition(".")
            if kind == "step":
                self._step(event, word)
            elif word == "kept":
                self._keep(event)
            elif word in ("paused", "resumed"):
                self.is_paused = word == "paused"
            elif word != "submitted":
                self._move_job(event, word)
        twice = Counter(event.no for event in self.history.events if event.type == "step.completed")
        for no, count in twice.items():
            if count > 1:
                self._break("completed twice", f"step {no} was completed {count} times")

    def _move_job(self, event: EventView, word: str) -> None:
        try:
            target = JobState(word.upper())
        except ValueError:
            self._break("unknown event", f"event {event.seq} is {event.type}")
            return
        if target not in JOB_MOVES[self.job]:
            rule = "terminal job moved" if self.job in JOB_TERMINAL else "job move"
            self._break(rule, f"event {event.seq} takes it from {self.job} to {target}")
        self.job = target

    def _keep(self, event: EventView) -> None:
        """A retry of an earlier job begins with what that one had done."""
        nodes = {step.no: step for step in self.history.steps}
        for text, state in event.payload["states"].items():
            row = nodes.get(int(text))
            if row is not None:
                self.steps[row.no] = _StepReplay(row.node, StepState(state), row.index)
                if row.index is None and row.fan is not None:
                    self.fans[row.no] = row.fan

    def _step(self, event: EventView, word: str) -> None:
        step = self.steps.get(-1 if event.no is None else event.no)
        if step is None or event.no is None:
            self._break("unknown step", f"event {event.seq} ({event.type}) is of step {event.no}")
            return
        if self.job in JOB_TERMINAL and word != "cancelled":
            self._break("after the end", f"event {event.seq} ({event.type}) of step {event.no} in a {self.job} job")
        if word in NOTES:
            if word == "fanned":
                self._fan(event)
            return
        try:
            target = StepState(word.upper())
        except ValueError:
            self._break("unknown event", f"event {event.seq} is {event.type}")
            return
        self._move_step(event, step, target)

    def _move_step(self, event: EventView, step: _StepReplay, target: StepState) -> None:
        what = f"event {event.seq} takes step {event.no} from {step.state} to {target}"
        if target not in STEP_MOVES[step.state]:
            self._break("finished step moved" if step.state in STEP_TERMINAL else "step move", what)
        self._check_attempt(event, step, target)
        if step.index is None and step.state is StepState.BLOCKED and target not in STEP_TERMINAL:
            unmet = [n for n in self._needs(step) if self.steps[n].state not in STEP_DONE]
            if unmet:
                self._break("started too soon", f"{what}, but steps {unmet} are not done")
        if target is StepState.COMPLETED and event.no in self.fans:
            children = [s for s in self.steps.values() if s.index is not None and s.node == event.no]
            done = sum(child.state is StepState.COMPLETED for child in children)
            if done != self.fans[event.no]:
                self._break("joined too soon", f"{what}, but {done} of {self.fans[event.no]} children are done")
        step.state = target

    def _check_attempt(self, event: EventView, step: _StepReplay, target: StepState) -> None:
        attempt = event.attempt or 0
        is_call = self.history.plan.nodes[step.node].kind is NodeKind.RECIPE and target is StepState.PARKED
        begins = target is StepState.RUNNING or (is_call and attempt != step.attempt)
        if attempt != step.attempt + begins:
            what = f"event {event.seq} ({event.type}) of step {event.no}"
            self._break("attempt", f"{what} is of attempt {attempt}, after attempt {step.attempt}")
        step.attempt = attempt

    def _fan(self, event: EventView) -> None:
        assert event.no is not None
        span, node = event.payload, self.history.plan.nodes[event.no]
        self.fans[event.no] = span["of"]
        first = StepState.QUEUED if node.kind is NodeKind.TASK else StepState.READY
        for place in range(span["count"]):
            no = span["first"] + place
            if no in self.steps:
                self._break("fanned twice", f"event {event.seq} makes step {no} again")
            self.steps[no] = _StepReplay(event.no, first, span["from"] + place)

    def _needs(self, step: _StepReplay) -> list[int]:
        plan = self.history.plan
        return [plan.number[name] for name in plan.nodes[step.node].needs]

    def _break(self, rule: str, message: str) -> None:
        self.violations.append(Violation(rule, self.history.view.id, message))


def _stored(history: JobHistory, replay: _Replay) -> Iterator[Violation]:
    """What is stored must be what the events tell."""
    view = history.view
    pairs: list[tuple[str, object, object]] = [
        ("number of events", view.event_seq, len(history.events)),
        ("state", view.state, replay.job),
        ("pause", view.is_paused, replay.is_paused),
        ("number of steps", [step.no for step in history.steps], sorted(replay.steps)),
    ]
    for step in history.steps:
        told = replay.steps.get(step.no)
        if told is not None:
            stored = (step.node, step.index, step.state, step.attempt)
            pairs.append((f"step {step.no}", stored, (told.node, told.index, told.state, told.attempt)))
    for what, stored_value, told_value in pairs:
        if stored_value != told_value:
            yield Violation("replay", view.id, f"{what}: stored {stored_value}, told {told_value}")


def _rows(history: JobHistory) -> Iterator[Violation]:
    """The rows must agree with one another."""
    view, steps = history.view, history.steps
    is_ended = view.state in JOB_TERMINAL
    still_open = sum(step.state not in STEP_TERMINAL for step in steps)
    failed_fans = {step.node for step in steps if step.index is not None and step.state is StepState.FAILED}
    failed = sum(
        step.state is StepState.FAILED and not (step.index is None and step.no in failed_fans) for step in steps
    )
    facts = [
        (view.steps_total == len(steps), "counts", f"steps_total is {view.steps_total}, of {len(steps)} steps"),
        (view.steps_open == still_open, "counts", f"steps_open is {view.steps_open}, of {still_open} open steps"),
        (view.steps_failed == failed, "counts", f"steps_failed is {view.steps_failed}, of {failed} failed steps"),
        (is_ended == (still_open == 0), "end", f"it is {view.state} with {still_open} open steps"),
        (is_ended == (view.finished_at is not None), "end", f"it is {view.state}, finished at {view.finished_at}"),
        (
            (view.state is JobState.COMPLETED) == all(step.state in STEP_DONE for step in steps),
            "end",
            f"it is {view.state} with steps {sorted({str(step.state) for step in steps})}",
        ),
    ]
    for step in steps:
        is_running = step.state is StepState.RUNNING
        facts.append((is_running == (step.worker is not None), "holder", f"step {step.no} is {step.state}"))
        if not is_ended and step.index is None and step.state is StepState.BLOCKED:
            unmet = sum(steps[n].state not in STEP_DONE for n in _need_numbers(history.plan, step.node))
            facts.append((step.unmet == unmet, "counts", f"step {step.no} waits for {step.unmet}, not {unmet}"))
    for holds, rule, message in facts:
        if not holds:
            yield Violation(rule, view.id, message)


def _need_numbers(plan: Plan, node: int) -> list[int]:
    return [plan.number[name] for name in plan.nodes[node].needs]
