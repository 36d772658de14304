"""The recipes that simulated jobs are made from: chains, diamonds, fan-outs, conditions, timers and child recipes.

They are made from fixed seeds and registered once, so that a run's history does not depend on what ran before it.
"""

from __future__ import annotations

import random
from typing import Any

from windlass.core.plan import Node, NodeKind, OnFailure, Plan
from windlass.core.retry import Retry

LEAVES = 12
PLANS = 60
_NAMES = "abcdefg"
QUEUES = ("main_processing", "background_processing")


def library() -> list[Plan]:
    """Every plan; the first LEAVES of them start no child jobs, and the others only those before them."""
    plans: list[Plan] = []
    for number in range(PLANS):
        rng = random.Random(f"plan {number}")
        children = [plan.recipe for plan in plans[:LEAVES]] if number >= LEAVES else []
        if number > 2 * LEAVES:
            children += [plan.recipe for plan in plans[LEAVES : 2 * LEAVES]]
        plans.append(_plan(rng, f"recipe_{number}", children))
    return plans


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
    speaking = [n for n in before if n.name in needs and n.kind is not NodeKind.TIMER and not n.each and not n.when]
    told = rng.choice(speaking).name if speaking and rng.random() < 0.7 else None
    kind = rng.choices([NodeKind.TASK, NodeKind.TIMER, NodeKind.RECIPE], [8, 1, 1.5 if children else 0])[0]
    when = each = None
    if rng.random() < 0.2:
        when = f"steps.{told}.outputs.ok" if told else "inputs.flag"
    if rng.random() < 0.25:
        each = f"steps.{told}.outputs.items" if told else "inputs.items"
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
