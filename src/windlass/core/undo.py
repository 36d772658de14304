"""Undo: derives the plan of an undo job from a job's rows, and its own plan.

A COMPLETED step and the immutable plan are the record of an effect; there is no second list that could be lost. If a
job ends in any way but COMPLETED, the same commit inserts an undo job for the effects that stand.

    plan of the job     reserve ──► charge ──► ship          charge and reserve have completed, ship has failed
    plan of its undo               charge ──► reserve        the newest effect first

A node of an undo plan has the name of the step that it undoes. It needs the undo of everything that used the effect:
if that fails for good, the effect must stay, because its users stay. So a failure abandons exactly the undo of what
the failed step depended on. By default the nodes also follow one another in one chain (`Node.follows`): one at a time,
in reverse order of completion, in whatever way each ends. With `undo_order: graph` they do not.

Steps without effects leave no node, unless many effects before and after them would need an edge for each pair. Then a
node that only joins them keeps the plan linear in the size of the graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from windlass.core.draft import Draft
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.plan import (
    UNDO_HANDLER,
    EffectKind,
    Node,
    NodeKind,
    Plan,
    UndoMode,
    UndoOrder,
    UndoWhen,
)
from windlass.core.retry import Retry
from windlass.core.states import JobState, StepState

# The undo of a child job and a joining node never fail by chance; a missing child's undo is tried again.
_PATIENT = Retry(max_attempts=5)
_HAPPENED = frozenset({StepState.COMPLETED, StepState.QUARANTINED})
_UNDER_WAY = frozenset({StepState.RUNNING, StepState.PARKED})
_LABEL_ID = "saga_workflow_id"


class Effects(StrEnum):
    """What became of the effects of a job's steps."""

    NONE = "none"  # no effect stands, or none was undone
    STANDING = "standing"
    UNDOING = "undoing"
    UNDONE = "undone"
    FAILED = "failed"  # the undo failed: a part of the effects stands


@dataclass(frozen=True, slots=True)
class Past:
    """A step of the job to be undone. `seq` is the number of the event of its end; None if it has not ended."""

    no: int
    node: int
    index: int | None
    state: StepState
    attempt: int
    seq: int | None = None
    # Whether this job took the finished step over from an earlier job, together with its effect.
    is_taken_over: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """A step whose effect stands, or may yet stand: an attempt runs that may succeed late."""

    no: int
    node: int
    name: str
    seq: int | None


def standing(plan: Plan, past: Iterable[Past], children: frozenset[int] = frozenset()) -> list[Standing]:
    """Return the standing effects in the order in which they are undone: the newest first.

    `children` are the numbers of steps whose child jobs may have left effects.
    """
    rows = list(past)
    kept = _before_savepoints(plan, rows)
    found = [
        # What was taken over is older than everything that this job did.
        Standing(row.no, row.node, label(plan, row.node, row.index), 0 if row.is_taken_over else row.seq)
        for row in rows
        if row.node not in kept and _has_effect(plan.nodes[row.node], row, children)
    ]
    # A step without an end is the newest. Numbers break ties: a plan's nodes come after the nodes that they need.
    return sorted(found, key=lambda one: (one.seq is None, one.seq or 0, one.no), reverse=True)


def label(plan: Plan, node: int, index: int | None) -> str:
    """Return the name of a step for people: `charge`, or `charge[3]` in a fan-out."""
    name = plan.nodes[node].name
    return name if index is None else f"{name}[{index}]"


def _has_effect(node: Node, row: Past, children: frozenset[int]) -> bool:
    if node.each is not None and row.index is None:
        # The children of a fan-out have the effects.
        return False
    if row.attempt == 0 and not row.is_taken_over:
        # It never began here: another job, which this one only copied, made the effect.
        return False
    if node.kind is NodeKind.RECIPE:
        return row.no in children
    if node.undo is None:
        return False
    if row.state in _HAPPENED or row.state is StepState.RUNNING:
        return True
    return node.undo.when is UndoWhen.STARTED


def _before_savepoints(plan: Plan, rows: Sequence[Past]) -> frozenset[int]:
    """Return the nodes whose effects stay: completed savepoints, and everything that they needed."""
    ahead = [
        row.node for row in rows if row.index is None and plan.nodes[row.node].savepoint and row.state in _HAPPENED
    ]
    kept = set(ahead)
    while ahead:
        for name in plan.nodes[ahead.pop()].needs:
            if (no := plan.number[name]) not in kept:
                kept.add(no)
                ahead.append(no)
    return frozenset(kept)


def finals(plan: Plan, past: Iterable[Past]) -> list[str]:
    """Return the names of the finished steps whose effects are declared final: nothing removes them."""
    return [
        label(plan, row.node, row.index)
        for row in past
        if plan.nodes[row.node].effect is EffectKind.FINAL and row.state in _HAPPENED
    ]


def undo_plan(plan: Plan, stands: Sequence[Standing]) -> Plan:
    """Return the plan that undoes these effects, which come in the order of `standing`."""
    graph = _Reversed(plan, stands)
    order = graph.order()
    in_turn = plan.undo_order is UndoOrder.COMPLETION
    # The worker does the work of joining nodes and of child jobs itself, in a queue that other undo steps use too.
    own = (undo.queue for one in stands if (undo := plan.nodes[one.node].undo) is not None)
    queue = next(own, plan.nodes[stands[0].node].queue)
    nodes = {}
    for place, at in enumerate(order):
        needs = tuple(sorted(graph.name(one) for one in graph.before[at]))
        follows = (graph.name(order[place - 1]),) if in_turn and place else ()
        one = stands[at] if isinstance(at, int) else None
        nodes[graph.name(at)] = replace(_node(plan, one, queue), name=graph.name(at), needs=needs, follows=follows)
    return Plan(recipe=f"{plan.recipe}.undo", nodes=tuple(nodes.values()))


def _node(plan: Plan, one: Standing | None, queue: str) -> Node:
    undo = None if one is None else plan.nodes[one.node].undo
    undoes = None if one is None else one.no
    if undo is None:
        return Node("", run=UNDO_HANDLER, undoes=undoes, queue=queue, retry=_PATIENT)
    return Node("", run=undo.run, undoes=undoes, queue=undo.queue, retry=undo.retry, timeout_s=undo.timeout_s)


class _Reversed:
    """The reversed graph of the effects: for each, the effects that must be undone before it.

    Vertices are the positions in `stands`, and the names of nodes that only join others.
    """

    def __init__(self, plan: Plan, stands: Sequence[Standing]) -> None:
        self._stands = stands
        self.before: dict[int | str, set[int | str]] = {at: set() for at in range(len(stands))}
        after: dict[int | str, set[int | str]] = {at: set() for at in range(len(stands))}
        effects: dict[int, list[int]] = {}
        for at, one in enumerate(stands):
            effects.setdefault(one.node, []).append(at)
        passing: list[str] = []
        entries: dict[int, int | str] = {}
        exits: dict[int, int | str] = {}
        for no, node in enumerate(plan.nodes):
            own = effects.get(no, [])
            if len(own) == 1 and node.each is None:
                entries[no] = exits[no] = own[0]
            else:
                # The node's begin and end, around its effects. Names of nodes have no colon.
                entries[no], exits[no] = f"{node.name}:begin", f"{node.name}:end"
                for name in (f"{node.name}:begin", f"{node.name}:end"):
                    self.before[name], after[name] = set(), set()
                    passing.append(name)
                inside: list[int | str] = [*own] or [f"{node.name}:end"]
                for vertex in inside:
                    self._edge(after, vertex, f"{node.name}:begin")
                for at in own:
                    self._edge(after, f"{node.name}:end", at)
            for name in node.needs:
                self._edge(after, entries[no], exits[plan.number[name]])
        self.joints = [name for name in passing if not self._contract(after, name)]

    def order(self) -> list[int | str]:
        """Return the vertices in the order of the undo; a joining vertex comes right before the first that needs it."""
        done: dict[int | str, None] = {}
        for at in range(len(self._stands)):
            ahead: list[int | str] = [at]
            while ahead:
                missing = sorted((one for one in self.before[ahead[-1]] if one not in done), key=str)
                if missing:
                    ahead.extend(missing)
                else:
                    done[ahead.pop()] = None
        return list(done)

    def name(self, vertex: int | str) -> str:
        """Return the name of the vertex's node."""
        return self._stands[vertex].name if isinstance(vertex, int) else vertex

    def _edge(self, after: dict[int | str, set[int | str]], first: int | str, then: int | str) -> None:
        """Undo `first` before `then`."""
        self.before[then].add(first)
        after[first].add(then)

    def _contract(self, after: dict[int | str, set[int | str]], name: str) -> bool:
        """Replace a joining vertex by direct edges, unless that would take more edges than it has."""
        sources, targets = self.before[name], after[name]
        if len(sources) * len(targets) > len(sources) + len(targets):
            return False
        for one in sources:
            after[one].discard(name)
        for one in targets:
            self.before[one].discard(name)
        for first in sources:
            for then in targets:
                self._edge(after, first, then)
        del self.before[name], after[name]
        return True


def holds(plan: Plan, *, may_act: bool) -> Hold:
    """Return the holds that an undo job is born with. `may_act`: attempts of the job to be undone still run."""
    found = Hold.ASK if plan.undo is UndoMode.ASK else NO_HOLD
    return found | Hold.ATTEMPT if may_act else found


def release(draft: Draft, hold: Hold) -> bool:
    """Remove one of the holds that the undo job was born with. Return whether anything changed."""
    if draft.is_finished:
        return False
    released = [draft.release(draft.steps[no], hold) for no in sorted(draft.steps)]
    return any(released)


def is_waited_for(row: Past) -> bool:
    """Return whether the undo must wait for the step's attempt: a handler may still act."""
    return row.state is StepState.RUNNING


def may_succeed_late(plan: Plan, row: Past) -> bool:
    """Return whether a report of this open step may arrive after its job has ended, and then counts as an effect."""
    # A fan-out waits for its children and has no attempt.
    return plan.nodes[row.node].undo is not None and row.state in _UNDER_WAY and row.attempt > 0


def effects_of(undo: JobState | None, *, may_stand: bool, is_asked: bool = False) -> Effects:
    """Return what became of a job's effects. `undo` is the state of its last undo job, which may wait for a person."""
    if is_asked and undo is JobState.PENDING:
        return Effects.STANDING
    match undo:
        case None:
            return Effects.STANDING if may_stand else Effects.NONE
        case JobState.COMPLETED:
            return Effects.UNDONE
        case JobState.PENDING | JobState.QUEUED | JobState.DISPATCHING | JobState.PROCESSING | JobState.PREVIEW:
            return Effects.UNDOING
        case JobState.CANCELLED:
            return Effects.STANDING
        case _:
            return Effects.FAILED


def undo_id(job_id: UUID, part: int, now: datetime) -> UUID:
    """Return the id of an undo job. Like other ids it begins with the time, and a repeated commit gets the same id.

    It is greater than the job's id, even if the job's id is ahead of the clock: the two are locked in this order.
    """
    ms = max(int(now.timestamp() * 1000), (job_id.int >> 80) + 1) & (1 << 48) - 1
    chance = int.from_bytes(hashlib.sha256(f"undo/{job_id}/{part}".encode()).digest()[:10], "big")
    bits = ms << 80 | 7 << 76 | (chance >> 2 & 0xFFF) << 64 | 2 << 62 | chance & (1 << 62) - 1
    return UUID(int=bits)


def undo_labels(job_id: UUID, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of an undo job: those of the job, and those that mark a compensation."""
    return {**labels, "saga_compensation": "true", "is_compensation": "true", _LABEL_ID: str(job_id)}


def undo_key(job_id: UUID, name: str) -> str:
    """Return the idempotency key of an undo step: the same on every attempt, and in every resumed undo job."""
    return f"undo/{job_id}/{name}"
