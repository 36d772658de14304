"""Running a finished job again, keeping what succeeded: the rows that the new job starts with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windlass.core.draft import FAN
from windlass.core.graph import starts
from windlass.core.plan import Plan
from windlass.core.states import STEP_DONE, StepState


@dataclass(frozen=True, slots=True)
class Kept:
    """A step row of the old job, and then of the new one."""

    no: int
    node: int
    index: int | None
    state: StepState
    unmet: int
    fan: int | None
    fanned: int | None
    item: str | None
    output: str | None
    waiting_for: str | None = None


def retry_rows(plan: Plan, old: list[Kept]) -> list[Kept]:
    """Done steps stay done. A fan-out that was under way keeps its finished children. All else starts afresh."""
    first = starts(plan)
    children: dict[int, list[Kept]] = {}
    for row in old:
        if row.index is not None:
            children.setdefault(row.node, []).append(row)
    by_no = {row.no: row for row in old}
    rows: list[Kept] = []
    for no, node in enumerate(plan.nodes):
        before = by_no[no]
        if before.state in STEP_DONE:
            rows.append(before)
            continue
        unmet = sum(by_no[plan.number[name]].state not in STEP_DONE for name in node.needs)
        start = StepState.BLOCKED if unmet else _start(first[no].state, node.is_routed)
        fresh = replace(before, state=start, unmet=unmet, fan=None, fanned=None, output=None)
        if before.fan is not None and unmet == 0:
            rows.append(_fan_again(before, children.get(no, [])))
        else:
            children.pop(no, None)
            rows.append(fresh)
    return rows + [child for no in sorted(children) for child in _children_again(plan, no, children[no])]


def _start(state: StepState, is_routed: bool) -> StepState:
    if state is StepState.BLOCKED:
        return StepState.READY if is_routed else StepState.QUEUED
    return state


def _fan_again(fan: Kept, children: list[Kept]) -> Kept:
    assert fan.fan is not None
    unmet = fan.fan - sum(child.state is StepState.COMPLETED for child in children)
    is_whole = len(children) == fan.fan
    # A fan-out that never got all its children goes back to the router for the rest.
    state = StepState.PARKED if is_whole else StepState.READY
    return replace(
        fan, state=state, unmet=unmet, fanned=len(children), output=None, waiting_for=FAN if is_whole else None
    )


def _children_again(plan: Plan, node: int, children: list[Kept]) -> list[Kept]:
    again = StepState.READY if plan.nodes[node].is_child_routed else StepState.QUEUED
    return [
        child if child.state is StepState.COMPLETED else replace(child, state=again, unmet=0, output=None)
        for child in children
    ]
