"""The recipes of simulated jobs: chains, diamonds, fan-outs, conditions, timers and child recipes.

Some recipes use providers, wait for slots, or wait for events. Fixed seeds generate them, and they are registered once,
so a run's history does not depend on earlier runs.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from windlass.core.plan import Node, NodeKind, OnFailure, Plan, Undo, UndoOrder, UndoWhen
from windlass.core.retry import Retry

LEAVES = 12
PLANS = 60
OUTER_PLANS = 40
_NAMES = "abcdefg"
# A handler for each node's name; and two kinds of workers, each with a part of the handlers.
HANDLERS = _NAMES
PARTS = ("abcd", "defg")
# The handlers that undo the steps: the same letters, large.
UNDO_HANDLERS = _NAMES.upper()
UNDO_PLANS = 24
EVENTS = ("go", "stop")
# Keys that steps of many jobs share, the limit of each, and the amount that a step takes.
KEYS = (("one-${inputs.seconds}", 1, 1), ("few", 3, 1), ("few", 3, 2))
# The slots of its provider that a step takes; some steps take more than the provider has.
PLACES = (1, 1, 1, 2, 3)
# The expected cost of an attempt.
COST = 2.0
QUEUES = ("main_processing", "background_processing")


def library() -> list[Plan]:
    """Return every plan. The first LEAVES plans start no child jobs, and the others only earlier plans."""
    plans: list[Plan] = []
    for number in range(PLANS):
        rng = random.Random(f"plan {number}")
        children = [plan.recipe for plan in plans[:LEAVES]] if number >= LEAVES else []
        if number > 2 * LEAVES:
            children += [plan.recipe for plan in plans[LEAVES : 2 * LEAVES]]
        plans.append(_plan(rng, f"recipe_{number}", children))
    return plans


def outer_library() -> list[Plan]:
    """Return plans whose steps use providers, share keys, cost money or wait for events; some start child jobs."""
    plans: list[Plan] = []
    leaves = [plan.recipe for plan in library()[:LEAVES]]
    for number in range(OUTER_PLANS):
        rng = random.Random(f"outer plan {number}")
        children = leaves + [plan.recipe for plan in plans[:8]] if number >= 8 else []
        plan = _plan(rng, f"outer_{number}", children)
        nodes = list(plan.nodes)
        chosen = [place for place in range(len(nodes)) if rng.random() < 0.6] or [0]
        for place in chosen:
            nodes[place] = _outer_node(rng, nodes[place])
        plans.append(replace(plan, nodes=tuple(nodes)))
    return plans


def undo_library() -> list[Plan]:
    """Return plans whose steps can be undone; the later ones start jobs of the earlier ones."""
    plans: list[Plan] = []
    for number in range(UNDO_PLANS):
        rng = random.Random(f"undo plan {number}")
        plan = _plan(rng, f"undo_{number}", [plan.recipe for plan in plans[:8]] if number >= 8 else [])
        nodes = tuple(_undone(rng, node) for node in plan.nodes)
        plans.append(replace(plan, nodes=nodes, undo_order=rng.choice(list(UndoOrder))))
    return plans


def _undone(rng: random.Random, node: Node) -> Node:
    if node.kind is not NodeKind.TASK or rng.random() < 0.2:
        return node
    when = rng.choice([UndoWhen.COMPLETED, UndoWhen.COMPLETED, UndoWhen.STARTED])
    retry = Retry(max_attempts=rng.choice([2, 6]), base_s=0.5, cap_s=5.0)
    undo = Undo(node.run.upper(), when, rng.choice(QUEUES), retry, node.timeout_s)
    return replace(node, undo=undo, savepoint=rng.random() < 0.1)


def _outer_node(rng: random.Random, node: Node) -> Node:
    if node.kind is not NodeKind.TASK:
        return node
    # After a dependency, the event can be early.
    if node.each is None and rng.random() < (0.35 if node.needs else 0.1):
        match = {"flag": "${inputs.flag}"} if rng.random() < 0.6 else {}
        wait_s = rng.choice([None, 30.0, 60.0])
        return replace(node, kind=NodeKind.EVENT, run=rng.choice(EVENTS), with_=match, wait_s=wait_s)
    provider = rng.choice(["alpha", "alpha", "beta", ""])
    key, limit, takes = rng.choice(KEYS) if rng.random() < 0.4 or not provider else (None, 1, 1)
    return replace(
        node,
        provider=provider,
        concurrency=key,
        limit=limit,
        takes=takes,
        places=rng.choice(PLACES) if provider else 1,
        cost=rng.choice([None, None, COST]),
        wait_s=rng.choice([None, 25.0, 50.0]),
    )


def _plan(rng: random.Random, name: str, children: list[str]) -> Plan:
    nodes: list[Node] = []
    for node_name in _NAMES[: rng.choice([1, 2, 2, 3, 3, 4, 5, 7])]:
        nodes.append(_node(rng, node_name, nodes, children))
    return Plan(
        name,
        tuple(nodes),
        output={"ok": rng.random() < 0.8, "items": [1, 2], "v": f"${{steps.{nodes[-1].name}.outputs}}"},
        on_failure=rng.choice([OnFailure.FINISH, OnFailure.FINISH, OnFailure.FINISH, OnFailure.STOP]),
    )


def _node(rng: random.Random, name: str, before: list[Node], children: list[str]) -> Node:
    needs = sorted({node.name for node in before if rng.random() < 1.2 / len(before)})
    # The steps before this one whose output its condition and its items may read.
    sources = [n for n in before if n.name in needs and n.kind is not NodeKind.TIMER and not n.each and not n.when]
    source = rng.choice(sources).name if sources and rng.random() < 0.7 else None
    kind = rng.choices([NodeKind.TASK, NodeKind.TIMER, NodeKind.RECIPE], [8, 1, 1.5 if children else 0])[0]
    when = each = None
    if rng.random() < 0.2:
        when = f"steps.{source}.outputs.ok" if source else "inputs.flag"
    if rng.random() < 0.25:
        each = f"steps.{source}.outputs.items" if source else "inputs.items"
    return Node(
        name,
        kind,
        run=rng.choice(children) if kind is NodeKind.RECIPE else name,
        needs=tuple(needs),
        with_=_arguments(rng, kind),
        when=when,
        each=each,
        queue=rng.choice(QUEUES),
        retry=Retry(max_attempts=rng.randint(1, 3), base_s=rng.choice([0.5, 2.0, 5.0]), cap_s=20.0),
        timeout_s=rng.choice([10.0, 25.0, 40.0]),
    )


def _arguments(rng: random.Random, kind: NodeKind) -> dict[str, Any]:
    if kind is NodeKind.TIMER:
        return {"seconds": rng.choice([0, 1.5, 20, "${inputs.seconds}"])}
    if kind is NodeKind.RECIPE:
        return {"flag": "${inputs.flag}", "items": "${inputs.items}", "seconds": "${inputs.seconds}"}
    return {}
