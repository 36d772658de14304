"""Decides the rows that a new job starts with when it runs a finished job again.

A retry keeps every step that is done. A re-run from a step restarts that step and all its descendants (`Restart`), and
treats all other steps like a retry. The children of fan-outs get new numbers without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from windlass.core.birth import born
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.plan import Node, Plan
from windlass.core.states import STEP_DONE, StepState
from windlass.core.wait import Wait, WaitKind, waiting_for


@dataclass(frozen=True, slots=True)
class Kept:
    """A step row of the old job, and the row of the new job made from it."""

    no: int
    node: int
    index: int | None
    state: StepState
    unmet: int
    fan: int | None
    fanned: int | None
    item: str | None
    output: str | None
    wait: Wait | None = None
    holds: Hold = NO_HOLD

    @property
    def waiting_for(self) -> str | None:
        """The step's wait as people see it: the names of its holds, or its wait."""
        return waiting_for(self.wait, self.holds)


@dataclass(frozen=True, slots=True)
class Restart:
    """The steps that start again even if they are done: nodes with all their children, and one child of a fan-out."""

    nodes: frozenset[int] = frozenset()
    child: tuple[int, int] | None = None

    def is_kept(self, row: Kept) -> bool:
        """Return whether the new job keeps the step: the step is done and does not start again."""
        if row.state not in STEP_DONE or row.node in self.nodes:
            return False
        return self.child is None or row.node != self.child[0] or row.index not in (None, self.child[1])


NOTHING = Restart()


def retry_rows(plan: Plan, old: list[Kept], restart: Restart = NOTHING, holds: Hold = NO_HOLD) -> list[Kept]:
    """Return the rows of the new job. `holds` are the holds that the new job is submitted with.

    Done steps stay done. An unfinished fan-out keeps its finished children. All other steps start again.
    """
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
        unmet += _waits_its_turn(plan, node, by_no, restart)
        if before.fan is not None and unmet == 0 and no not in restart.nodes:
            again = [_child_again(plan, row, restart, holds) for row in own]
            nodes.append(_fan_again(node, before, again, holds))
            children += again
            continue
        birth = born(node, unmet=unmet, holds=holds)
        fresh = replace(before, state=birth.state, unmet=unmet, fan=None, fanned=None, output=None, holds=birth.holds)
        nodes.append(fresh)
    children.sort(key=lambda row: row.no)
    return nodes + [replace(row, no=no) for no, row in enumerate(children, len(nodes))]


def _waits_its_turn(plan: Plan, node: Node, by_no: dict[int, Kept], restart: Restart) -> bool:
    """Return whether a node before this one in its chain runs again; kept nodes pass their turn on."""
    while node.follows:
        before = plan.number[node.follows[0]]
        if not restart.is_kept(by_no[before]):
            return True
        node = plan.nodes[before]
    return False


def _fan_again(node: Node, fan: Kept, children: list[Kept], holds: Hold) -> Kept:
    assert fan.fan is not None
    unmet = fan.fan - sum(child.state is StepState.COMPLETED for child in children)
    is_whole = len(children) == fan.fan
    again = replace(fan, unmet=unmet, fanned=len(children), output=None)
    if is_whole:
        return replace(again, state=StepState.PARKED, wait=Wait(WaitKind.FAN))
    # The fan-out never got all its children, so the router must add the rest.
    birth = born(node, holds=holds)
    return replace(again, state=birth.state, holds=birth.holds)


def _child_again(plan: Plan, child: Kept, restart: Restart, holds: Hold) -> Kept:
    if restart.is_kept(child):
        return child
    birth = born(plan.nodes[child.node], holds=holds, is_child=True)
    return replace(child, state=birth.state, unmet=0, output=None, holds=birth.holds)
