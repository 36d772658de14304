"""A plan: the immutable, canonical graph that a recipe compiles to, named by the hash of its content.

Every node comes after all nodes that it needs. A node's position in the list is its `no`, the number of its step row in
every job. The step rows of fan-outs come after the nodes: each child takes the next free number.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from windlass.core.retry import Retry

PLAN_FORMAT = 1
# The default lifetime of a job, to which the waits that the recipe declares are added.
TTL_S = 24 * 3600.0
# The handler of a step that names a provider and no handler: it only calls the provider.
PROVIDER_HANDLER = "windlass.provider"
# The handler of undo steps without a function of their own: it undoes a child job, or only joins branches.
UNDO_HANDLER = "windlass.undo"


class NodeKind(StrEnum):
    """The party that does a node's work."""

    TASK = "task"  # a handler on a worker
    RECIPE = "recipe"  # a child job
    TIMER = "timer"  # none: time passes
    EVENT = "event"  # the sender of an event of this name
    APPROVAL = "approval"  # people who vote


class OnFailure(StrEnum):
    """The fate of a job's other branches after a step has failed for good."""

    FINISH = "finish"  # they run to their end, then the job is FAILED
    STOP = "stop"  # they are cancelled and the job is FAILED at once


class UndoWhen(StrEnum):
    """The steps whose effects count as standing."""

    COMPLETED = "completed"  # the step completed
    STARTED = "started"  # an attempt began: its effect may stand although the step failed


class EffectKind(StrEnum):
    """How lasting a step's effect outside Windlass is."""

    REVERSIBLE = "reversible"  # its undo removes it
    EXPIRING = "expiring"  # it ends by itself
    FINAL = "final"  # nothing removes it


class UndoOrder(StrEnum):
    """The order in which the effects of a job are undone."""

    COMPLETION = "completion"  # one at a time, the newest first
    GRAPH = "graph"  # each after the effects that depend on it; independent branches together


class UndoMode(StrEnum):
    """Who starts the undo of a job that ended badly."""

    AUTO = "auto"  # the commit that ends the job
    ASK = "ask"  # a person


@dataclass(frozen=True, slots=True)
class Undo:
    """How a step is undone: the handler, and the options of its attempts."""

    run: str
    when: UndoWhen = UndoWhen.COMPLETED
    queue: str = "main_processing"
    retry: Retry = Retry()
    timeout_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Node:
    """One step of the graph.

    `with_` holds the arguments, a tree in which strings may contain `${…}`. `when` and `each` are whole expressions
    without the `${}`. `each` makes the node a fan-out: one child per item, with `item` and `index` in scope.
    For a TIMER, `with_["seconds"]` is its length. For an EVENT, `with_` is what the event must contain. For an
    APPROVAL, it has the `question` and the values to `show`. `run` is the name of the handler, the recipe or the event.

    A TASK with a `provider`, a `concurrency` key (a template) or a `cost` waits for a slot before it runs. `limit` is
    the capacity of one key and `takes` the share that a step takes. `places` is how many of the provider's places a
    step takes. `cost` is the expected maximum cost of an attempt.
    `wait_s` limits the wait for an answer from outside, `ttl_s` the lifetime of a child job. `approval` has the terms
    of an APPROVAL (`core/approval.py`).

    `undo` removes the step's effect if the job ends badly. Once a step with `savepoint` is done, the effects of it and
    of the steps before it stay. The last two fields are for the plans of undo jobs (`core/undo.py`): `undoes` is the
    number of the step that the node undoes, and `follows` names nodes that must have ended before, in any way.
    """

    name: str
    kind: NodeKind = NodeKind.TASK
    run: str = ""
    needs: tuple[str, ...] = ()
    with_: Any = None
    when: str | None = None
    each: str | None = None
    queue: str = "main_processing"
    retry: Retry = Retry()
    timeout_s: float = 3600.0
    provider: str = ""
    concurrency: str | None = None
    limit: int = 1
    cost: float | None = None
    wait_s: float | None = None
    ttl_s: float | None = None
    takes: int = 1
    places: int = 1
    approval: dict[str, Any] | None = None
    undo: Undo | None = None
    effect: EffectKind | None = None
    savepoint: bool = False
    undoes: int | None = None
    follows: tuple[str, ...] = ()

    @property
    def may_leave_effects(self) -> bool:
        """Return whether the node's steps can have effects to undo: their own, or those of child jobs."""
        return self.undo is not None or self.kind is NodeKind.RECIPE

    @property
    def waits_for(self) -> int:
        """The number of nodes that must end before this one."""
        return len(self.needs) + len(self.follows)

    @property
    def is_routed(self) -> bool:
        """Return whether the engine must resolve something before the step can run or be skipped."""
        return self.when is not None or self.each is not None or self.kind is not NodeKind.TASK or self.is_slotted

    @property
    def waits_s(self) -> float:
        """The longest wait that the node declares: for an event, an answer, people, a child job with a TTL, a timer."""
        if self.kind is NodeKind.TIMER:
            seconds = (self.with_ or {}).get("seconds")
            return float(seconds) if isinstance(seconds, int | float) else 0.0
        return (self.ttl_s if self.kind is NodeKind.RECIPE else self.wait_s) or 0.0

    @property
    def is_child_routed(self) -> bool:
        """Return whether the engine must resolve something before a child of this fan-out can run."""
        return self.kind is not NodeKind.TASK or self.is_slotted

    @property
    def is_slotted(self) -> bool:
        """Return whether the node's steps need a slot before they run."""
        return bool(self.provider) or self.concurrency is not None or self.cost is not None


class Descendants:
    """The descendants of each node, computed on demand.

    The sets of all nodes together grow with the square of the graph: 50 million numbers for a chain of 10,000 steps.
    So the cache holds at most `KEPT_MAX` numbers, which covers graphs of usual size completely.
    """

    KEPT_MAX = 100_000

    def __init__(self, successors: tuple[tuple[int, ...], ...]) -> None:
        self._successors = successors
        self._kept: dict[int, frozenset[int]] = {}
        self._room = self.KEPT_MAX

    def __getitem__(self, no: int) -> frozenset[int]:
        found = self._kept.get(no)
        if found is None:
            found = self._walk(no)
            if len(found) < self._room:
                self._kept[no] = found
                self._room -= len(found) + 1
        return found

    def _walk(self, no: int) -> frozenset[int]:
        found: set[int] = set()
        ahead = list(self._successors[no])
        while ahead:
            after = ahead.pop()
            if after not in found:
                found.add(after)
                ahead.extend(self._successors[after])
        return frozenset(found)


@dataclass(frozen=True)
class Plan:
    """The whole graph. Equal recipes have equal plans, and so equal hashes, in either front end."""

    recipe: str
    nodes: tuple[Node, ...]
    inputs_schema: dict[str, Any] = field(default_factory=dict)
    output: Any = None
    on_failure: OnFailure = OnFailure.FINISH
    # The lifetime of the plan's jobs; None: `lives_s` computes it.
    ttl_s: float | None = None
    undo: UndoMode = UndoMode.AUTO
    undo_order: UndoOrder = UndoOrder.COMPLETION

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each node, by name."""
        return {node.name: no for no, node in enumerate(self.nodes)}

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the numbers of its direct dependents."""
        after: list[list[int]] = [[] for _ in self.nodes]
        for no, node in enumerate(self.nodes):
            for name in node.needs:
                after[self.number[name]].append(no)
        return tuple(tuple(numbers) for numbers in after)

    @cached_property
    def followers(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the numbers of the nodes that only wait for its end."""
        after: list[list[int]] = [[] for _ in self.nodes]
        for no, node in enumerate(self.nodes):
            for name in node.follows:
                after[self.number[name]].append(no)
        return tuple(tuple(numbers) for numbers in after)

    @cached_property
    def is_undo(self) -> bool:
        """Return whether this is the plan of an undo job."""
        return any(node.undoes is not None for node in self.nodes)

    @cached_property
    def may_undo(self) -> bool:
        """Return whether a job of this plan can leave effects that must be undone."""
        return any(node.may_leave_effects for node in self.nodes)

    @cached_property
    def descendants(self) -> Descendants:
        """For each node, the numbers of its direct and indirect dependents."""
        return Descendants(self.successors)

    @cached_property
    def lives_s(self) -> float:
        """The lifetime of a job without a TTL from its caller: never shorter than the declared waits in a row."""
        if self.ttl_s is not None:
            return self.ttl_s
        until: list[float] = []
        for node in self.nodes:
            before = max((until[self.number[name]] for name in node.needs), default=0.0)
            until.append(before + node.waits_s)
        return TTL_S + max(until)

    @cached_property
    def is_slotted(self) -> bool:
        """Return whether any step needs a slot before it runs."""
        return bool(self.slotted)

    @cached_property
    def slotted(self) -> frozenset[int]:
        """The nodes whose steps need a slot before they run."""
        return frozenset(no for no, node in enumerate(self.nodes) if node.is_slotted)

    @cached_property
    def lined(self) -> frozenset[int]:
        """The nodes whose success changes a slot: a node with a slot, or a direct predecessor of such a node."""
        before = (no for no, after in enumerate(self.successors) if not self.slotted.isdisjoint(after))
        return self.slotted.union(before)

    @cached_property
    def is_plain(self) -> bool:
        """Return whether the steps need no slots, events or approvals, so that only their states are written."""
        return not self.is_slotted and not self.has_events and not self.has_approvals

    @cached_property
    def has_events(self) -> bool:
        """Return whether any step waits for an event."""
        return any(node.kind is NodeKind.EVENT for node in self.nodes)

    @cached_property
    def has_approvals(self) -> bool:
        """Return whether any step waits for people who vote."""
        return any(node.kind is NodeKind.APPROVAL for node in self.nodes)

    @cached_property
    def canonical(self) -> bytes:
        """The bytes that are hashed and stored: sorted keys, no defaults."""
        return msgspec.json.encode(_plan_json(self), order="deterministic")

    @cached_property
    def hash(self) -> str:
        """The plan's name: a digest of its canonical bytes."""
        return hashlib.sha256(self.canonical).hexdigest()


_NODE_DEFAULTS = Node(name="")
# Keys that newer versions added. Each has the same name in the stored plan.
_ADDED_KEYS = (
    "provider", "concurrency", "limit", "cost", "wait_s", "ttl_s", "takes", "places", "approval", "savepoint", "undoes"
)  # fmt: skip
_NODE_KEYS = (
    "kind", "run", "needs", "with_", "when", "each", "queue", "timeout_s", *_ADDED_KEYS, "effect", "follows"
)  # fmt: skip
_UNDO_DEFAULTS = Undo(run="")


def _node_json(node: Node) -> dict[str, Any]:
    out: dict[str, Any] = {"name": node.name}
    for key in _NODE_KEYS:
        value = getattr(node, key)
        if value != getattr(_NODE_DEFAULTS, key):
            out[key.rstrip("_")] = value
    if node.retry != _NODE_DEFAULTS.retry:
        out["retry"] = _retry_json(node.retry)
    if node.undo is not None:
        out["undo"] = _undo_json(node.undo)
    return out


def _retry_json(retry: Retry) -> dict[str, Any]:
    return {f: getattr(retry, f) for f in Retry.__slots__}


def _undo_json(undo: Undo) -> dict[str, Any]:
    out: dict[str, Any] = {"run": undo.run}
    for key in ("when", "queue", "timeout_s"):
        if getattr(undo, key) != getattr(_UNDO_DEFAULTS, key):
            out[key] = getattr(undo, key)
    if undo.retry != _UNDO_DEFAULTS.retry:
        out["retry"] = _retry_json(undo.retry)
    return out


def _plan_json(plan: Plan) -> dict[str, Any]:
    out: dict[str, Any] = {
        "format": PLAN_FORMAT,
        "recipe": plan.recipe,
        "steps": [_node_json(node) for node in plan.nodes],
        "inputs": plan.inputs_schema,
        "output": plan.output,
    }
    if plan.on_failure is not OnFailure.FINISH:
        out["on_failure"] = plan.on_failure
    if plan.ttl_s is not None:
        out["ttl_s"] = plan.ttl_s
    if plan.undo is not UndoMode.AUTO:
        out["undo"] = plan.undo
    if plan.undo_order is not UndoOrder.COMPLETION:
        out["undo_order"] = plan.undo_order
    return out


def plan_from_json(body: bytes | str) -> Plan:
    """Rebuild the plan from its `canonical` bytes. Only for stored plans: it validates nothing."""
    raw = msgspec.json.decode(body)
    nodes = tuple(
        Node(
            name=step["name"],
            kind=NodeKind(step.get("kind", "task")),
            run=step.get("run", ""),
            needs=tuple(step.get("needs", ())),
            with_=step.get("with"),
            when=step.get("when"),
            each=step.get("each"),
            queue=step.get("queue", _NODE_DEFAULTS.queue),
            retry=Retry(**step["retry"]) if "retry" in step else Retry(),
            timeout_s=step.get("timeout_s", _NODE_DEFAULTS.timeout_s),
            undo=_undo_from(step["undo"]) if "undo" in step else None,
            effect=EffectKind(step["effect"]) if "effect" in step else None,
            follows=tuple(step.get("follows", ())),
            **{key: step[key] for key in _ADDED_KEYS if key in step},
        )
        for step in raw["steps"]
    )
    return Plan(
        recipe=raw["recipe"],
        nodes=nodes,
        inputs_schema=raw["inputs"],
        output=raw["output"],
        on_failure=OnFailure(raw.get("on_failure", "finish")),
        ttl_s=raw.get("ttl_s"),
        undo=UndoMode(raw.get("undo", UndoMode.AUTO)),
        undo_order=UndoOrder(raw.get("undo_order", UndoOrder.COMPLETION)),
    )


def _undo_from(raw: dict[str, Any]) -> Undo:
    return Undo(
        raw["run"],
        UndoWhen(raw.get("when", UndoWhen.COMPLETED)),
        raw.get("queue", _UNDO_DEFAULTS.queue),
        Retry(**raw["retry"]) if "retry" in raw else Retry(),
        raw.get("timeout_s", _UNDO_DEFAULTS.timeout_s),
    )
