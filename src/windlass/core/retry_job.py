"""Running a finished job again, keeping what succeeded: the rows that the new job starts with.

A retry keeps every step that is done. A re-run from a step lets that step and all that come after it begin afresh, as
if they had never run (`Restart`); beside them it is a retry. Children of fan-outs are numbered anew, without gaps.
"""

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


@dataclass(frozen=True, slots=True)
class Restart:
    """What begins afresh though it may be done: nodes with all their children, and one child of a fan-out."""

    nodes: frozenset[int] = frozenset()
    child: tuple[int, int] | None = None

    def is_kept(self, row: Kept) -> bool:
        """Whether a step stays as it is: it is done, and nothing of it begins afresh."""
        if row.state not in STEP_DONE or row.node in self.nodes:
            return False
        return self.child is None or row.node != self.child[0] or row.index not in (None, self.child[1])


NOTHING = Restart()


def retry_rows(plan: Plan, old: list[Kept], restart: Restart = NOTHING) -> list[Kept]:
    """Done steps stay done. A fan-out that was under way keeps its finished children. All else starts afresh."""
    first = starts(plan)
    by_no = {row.no: row for row in old}
    of_fan: dict[int, list[Kept]] = {}
    for row in old:
        if row.index is not None:
            of_fan.setdefault(row.node, []).append(row)
    nodes: list[Kept] = []
    children: list[Kept] = []
    for no, node in enumerate(plan.nodes):
        before, own = by_no[no], of_fan.get(no, [])
        if restart.is_kept(before):
            nodes.append(before)
            children += own
            continue
        unmet = sum(not restart.is_kept(by_no[plan.number[name]]) for name in node.needs)
        if before.fan is not None and unmet == 0 and no not in restart.nodes:
            again = [_child_again(plan, row, restart) for row in own]
            nodes.append(_fan_again(before, again))
            children += again
            continue
        start = StepState.BLOCKED if unmet else _start(first[no].state, node.is_routed)
        nodes.append(replace(before, state=start, unmet=unmet, fan=None, fanned=None, output=None))
    children.sort(key=lambda row: row.no)
    return nodes + [replace(row, no=no) for no, row in enumerate(children, len(nodes))]


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


def _child_again(plan: Plan, child: Kept, restart: Restart) -> Kept:
    if restart.is_kept(child):
        return child
    again = StepState.READY if plan.nodes[child.node].is_child_routed else StepState.QUEUED
    return replace(child, state=again, unmet=0, output=None)
