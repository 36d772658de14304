"""Random recipes, random histories: for all reports in any order, the invariants hold and the job ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.world import BOOM, OUTPUT, World, plan
from windlass.core.control import cancel, overdue, pause, resume
from windlass.core.draft import Step
from windlass.core.hold import Hold
from windlass.core.outcome import Cancel, Failure, Lost, Outcome, Parked, Released, Report, Snooze, Success
from windlass.core.plan import Node, NodeKind, OnFailure, Plan
from windlass.core.retry import Retry
from windlass.core.retry_job import Kept, retry_rows
from windlass.core.route import Await, Call, Fan, Resolution, Run, Skip, Sleep, Unresolvable
from windlass.core.settle import settle
from windlass.core.states import JOB_TERMINAL, STEP_DONE, STEP_TERMINAL, StepState

S = StepState
NAMES = "abcdefg"


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(1, len(NAMES)))
    nodes = []
    for no in range(count):
        needs = draw(st.lists(st.sampled_from(NAMES[:no]), unique=True, max_size=3)) if no else []
        kind = draw(st.sampled_from([NodeKind.TASK] * 5 + [NodeKind.TIMER, NodeKind.RECIPE, NodeKind.EVENT]))
        line: dict[str, Any] = draw(st.sampled_from([{}, {}, {"provider": "fal"}, {"concurrency": "k"}, {"cost": 1.0}]))
        nodes.append(
            Node(
                NAMES[no],
                kind,
                run=NAMES[no],
                needs=tuple(sorted(needs)),
                when=draw(st.sampled_from([None, None, "inputs.x"])),
                each=draw(st.sampled_from([None, None, "inputs.xs"])),
                retry=Retry(max_attempts=draw(st.integers(1, 3))),
                wait_s=draw(st.sampled_from([None, 9.0])),
                **(line if kind is NodeKind.TASK else {}),
            )
        )
    return plan(*nodes, on_failure=draw(st.sampled_from(OnFailure)))


OUTCOMES: st.SearchStrategy[Outcome] = st.sampled_from(
    [
        Success(OUTPUT), Success(OUTPUT), Success(OUTPUT), Failure(BOOM), Failure(BOOM, is_retryable=False),
        Failure(BOOM, after_s=1), Failure(BOOM, is_counted=False), Snooze(5), Parked("x"), Parked("x", 9),
        Parked("x", external_id="e-1"), Parked("x", external_id=""), Released(), Lost(), Cancel(),
    ]
)  # fmt: skip


class Actor:
    """Does random things to a world. `draw` decides; every choice is part of the example, so failures shrink."""

    def __init__(self, world: World, data: st.DataObject) -> None:
        self.world = world
        self.data = data
        self.old_reports: list[Report] = []

    def choose(self, options: list[Step]) -> Step | None:
        return self.data.draw(st.sampled_from(options)) if options else None

    def _in(self, *states: StepState) -> list[Step]:
        return [step for step in self.world.steps.values() if step.state in states]

    def claim(self) -> None:
        if not self.world.job.is_paused and (step := self.choose(self._in(S.QUEUED))) is not None:
            self.world.claim(step)

    def report(self) -> None:
        if (step := self.choose(self._in(S.RUNNING, S.PARKED))) is not None:
            self.tell(step, self.data.draw(OUTCOMES))

    def tell(self, step: Step, outcome: Outcome) -> None:
        report = Report(self.world.job.id, step.no, step.attempt, outcome)
        spread = self.data.draw(st.sampled_from([0.0, 0.5]))
        if self.world.report(step, outcome, spread=spread):
            self.old_reports.append(report)
            # The same word again is not heard, unless a new wait is again for the outside.
            if not isinstance(outcome, Parked):
                assert not settle(self.world.draft(), report, spread)

    def report_late(self) -> None:
        """Anything that an earlier attempt said, again: nothing changes."""
        if self.old_reports:
            old = self.data.draw(st.sampled_from(self.old_reports))
            step = self.world.steps[old.no]
            if step.attempt != old.attempt or step.state in STEP_TERMINAL:
                assert not settle(self.world.draft(), old, 0.0)

    def route(self) -> None:
        if (step := self.choose(self._in(S.READY))) is not None:
            self.resolve(step, is_kind=False)

    def resolve(self, step: Step, *, is_kind: bool) -> None:
        """Give the router's answer; a kind one lets the job get on."""
        node = self.world.plan.nodes[step.node]
        options: list[Resolution] = []
        if step.index is None and node.each is not None:
            total = step.fan if step.fan is not None else self.data.draw(st.integers(0, 3))
            start = step.fanned or 0
            count = total - start if is_kind else self.data.draw(st.integers(0, total - start))
            if count or total == start:
                options.append(Fan(tuple("0" for _ in range(count)), start, total))
        elif node.kind is NodeKind.TIMER:
            options.append(Sleep(3))
        elif node.kind is NodeKind.RECIPE:
            options.append(Call({}))
        elif node.kind is NodeKind.EVENT:
            options += [Await("{}"), Await("{}", early=OUTPUT)]
        else:
            options.append(Run(node.concurrency))
        if not is_kind and step.index is None and step.fan is None:
            options += [Unresolvable(BOOM)] + ([Skip()] if node.when else [])
        if options:
            resolution = self.data.draw(st.sampled_from(options))
            self.world.route(node.name, resolution, step.index)

    def grant(self) -> None:
        if (step := self.choose(self._in(S.HELD))) is not None:
            in_line = step.holds == Hold.SLOT
            assert self.world.grant(self.world.plan.nodes[step.node].name, step.index) == in_line

    def wake(self) -> None:
        self.world.pass_time(self.data.draw(st.sampled_from([0.5, 5.0, 100.0])))
        if (step := self.choose(self._in(S.PARKED))) is not None:
            due = step.wake_at is not None and step.wake_at <= self.world.now
            assert self.world.wake(step) == due

    def control(self) -> None:
        draft = self.world.draft()
        if draft.is_finished:
            return
        [resume, resume, pause][self.data.draw(st.integers(0, 2))](draft)
        self.world.put(draft)

    def end(self) -> None:
        draft = self.world.draft()
        if self.data.draw(st.booleans()):
            cancel(draft, "")
        else:
            overdue(draft, is_deadline=self.data.draw(st.booleans()))
        self.world.put(draft)

    def act(self) -> None:
        usual: list[Callable[[], None]] = [self.claim, self.report, self.route, self.grant, self.wake]
        rare = [*usual, self.report_late, self.control]
        actions = rare if self.data.draw(st.integers(0, 4)) else [*rare, self.end]
        if not self.data.draw(st.integers(0, 2)):
            actions = usual
        self.data.draw(st.sampled_from(actions))()

    def finish(self) -> None:
        """Run every duty, and nothing else."""
        world = self.world
        for _ in range(400):
            if world.is_finished:
                return
            draft = world.draft()
            if resume(draft):
                world.put(draft)
            world.pass_time(1000)
            for step in self._in(S.READY):
                self.resolve(step, is_kind=True)
            for step in list(world.steps.values()):
                if world.is_finished:
                    return
                step = world.steps[step.no]
                if step.state is S.HELD:
                    assert world.grant(world.plan.nodes[step.node].name, step.index), "it stands in no line"
                    step = world.steps[step.no]
                if step.state is S.QUEUED:
                    world.claim(step)
                if step.state is S.PARKED and not world.wake(step) and step.waiting_for != "fan":
                    self.tell(world.steps[step.no], Success(OUTPUT))
                if world.steps[step.no].state is S.RUNNING:
                    self.tell(world.steps[step.no], Success(OUTPUT))
                world.check()
        raise AssertionError(f"the job does not end: {world.states()}")


@pytest.mark.covers("SCR-03", "SCR-41", "JN-62")
@settings(max_examples=300, stateful_step_count=40)
@given(plans(), st.data())
def test_the_invariants_hold_under_any_history_and_every_job_ends(graph: Plan, data: st.DataObject) -> None:
    world = World.of_plan(graph)
    actor = Actor(world, data)
    for _ in range(data.draw(st.integers(0, 40))):
        was_finished, events = world.is_finished, len(world.events)
        actor.act()
        world.check()
        if was_finished:
            assert len(world.events) == events, "something happened to a finished job"
    actor.finish()
    assert world.job.state in JOB_TERMINAL
    world.check()


@settings(max_examples=150)
@given(plans(), st.data())
def test_a_retried_job_starts_in_order_and_ends(graph: Plan, data: st.DataObject) -> None:
    world = World.of_plan(graph)
    actor = Actor(world, data)
    for _ in range(data.draw(st.integers(0, 30))):
        actor.act()
    if not world.is_finished:
        draft = world.draft()
        cancel(draft, "")
        world.put(draft)
    old = [Kept(s.no, s.node, s.index, s.state, s.unmet, s.fan, s.fanned, None, s.output) for s in world.steps.values()]
    rows = retry_rows(graph, sorted(old, key=lambda row: row.no))
    again = World.of_plan(graph)
    again.steps = {r.no: Step(r.no, r.node, r.index, r.state, r.unmet, 0, 0, 0, r.fan, r.fanned, r.wait) for r in rows}
    done = {(s.node, s.index) for s in again.steps.values() if s.state in STEP_DONE}
    for before in world.steps.values():
        if before.state in STEP_DONE and before.index is None:
            assert (before.node, None) in done, "what succeeded is kept"
    again.job.steps_total = max(again.steps) + 1
    again.job.steps_open = sum(step.state not in STEP_TERMINAL for step in again.steps.values())
    if again.job.steps_open:
        # Its events do not start where a fresh job's do; the end is what counts here.
        again.check = lambda: None  # type: ignore[method-assign]
        Actor(again, data).finish()
    assert all(step.state in STEP_TERMINAL for step in again.steps.values())
