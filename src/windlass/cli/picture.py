"""What a job's graph looks like now: its rows as one box per node, fan-outs as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from windlass.cli.graph import Box
from windlass.cli.marks import duration
from windlass.cli.wire import seconds_between
from windlass.core.plan import Plan
from windlass.core.states import STEP_TERMINAL, StepState
from windlass.core.wait import WaitKind
from windlass.pure.job_failed import fault_text
from windlass.views.read import FanCount, StepView

_IN_LINE = "slot"
_WAITS: dict[str, str] = {
    WaitKind.RETRY: "tried again",
    WaitKind.SNOOZE: "asked to wait",
    WaitKind.CHILD: "waits for its child job",
}


def boxes_of_job(plan: Plan, steps: Sequence[StepView], counts: Sequence[FanCount], now: datetime) -> list[Box]:
    """One box per node of the plan."""
    heads = {step.node: step for step in steps}
    fans: dict[int, list[FanCount]] = {}
    for count in counts:
        fans.setdefault(count.node, []).append(count)
    return [_box(plan, no, heads.get(no), fans.get(no, []), now) for no in range(len(plan.nodes))]


def _box(plan: Plan, no: int, step: StepView | None, fan: Sequence[FanCount], now: datetime) -> Box:
    node = plan.nodes[no]
    if step is None:
        return Box(node.name, str(node.kind), node.run, node.needs, is_fan=node.each is not None)
    counted = Counter({one.state: one.count for one in fan})
    state = step.state
    if state is StepState.PARKED and fan:
        # A fan-out waits for its children; what a reader wants to know is whether those run.
        state = next((s for s in (StepState.RUNNING, StepState.QUEUED) if counted[s]), StepState.PARKED)
    starts = [one.started_at for one in fan if one.started_at is not None]
    started = step.started_at or (min(starts) if starts else None)
    return Box(
        node.name,
        str(node.kind),
        node.run,
        node.needs,
        state=str(state),
        is_fan=node.each is not None,
        fan=step.fan,
        fan_done=sum(one.count for one in fan if one.state in STEP_TERMINAL),
        attempt=step.attempt,
        retries=step.failures + sum(one.failures for one in fan),
        seconds=seconds_between(started, step.finished_at if state in STEP_TERMINAL else now),
        note=_note(step, counted, now),
    )


def _note(step: StepView, counted: Counter[StepState], now: datetime) -> str:
    parts = []
    if counted[StepState.FAILED]:
        parts.append(f"{counted[StepState.FAILED]} failed")
    if step.state is StepState.PARKED and not counted:
        parts.append(_wait(step, now))
    elif step.state is StepState.HELD:
        parts.append("stands in line" if step.waiting_for == _IN_LINE else f"held: {step.waiting_for or 'not yet'}")
    # Work that is done elsewhere tells how far it is as well.
    is_outside = step.state is StepState.PARKED and (step.waiting_for or "").startswith(WaitKind.EXTERNAL)
    if (step.state is StepState.RUNNING or is_outside) and isinstance(step.progress, dict):
        pct = step.progress.get("pct")
        parts += [f"{round(pct, 1):g} %" if pct is not None else "", str(step.progress.get("message") or "")]
    if step.error and step.state not in (StepState.COMPLETED, StepState.SKIPPED):
        parts.append(fault_text(step.error))
    return " · ".join(part for part in parts if part)


def _wait(step: StepView, now: datetime) -> str:
    kind, _, rest = (step.waiting_for or "").partition(":")
    what = (
        f"waits for {rest}"
        if kind in (WaitKind.EXTERNAL, WaitKind.EVENT) and rest
        else _WAITS.get(kind, f"waits for {kind or 'a report'}")
    )
    left_s = seconds_between(now, step.wake_at)
    return f"{what}, {duration(left_s)} left" if left_s is not None and left_s > 0 else what
