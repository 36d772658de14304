"""Re-runs from a step in a simulation: the steps that run are those of the preview and of the plan."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.plan import NodeKind, Plan
from windlass.core.states import STEP_DONE, StepState
from windlass.engine import rerun
from windlass.store.database import Database
from windlass.store.plans import PLANS, plan_of
from windlass.testing.checker import Tables
from windlass.testing.sim.log import Log
from windlass.testing.sim.undone import undone_nodes
from windlass.views import read

_NO_WORK = ("step.cancelled", "step.abandoned")
Patiently = Callable[[random.Random, Callable[[], Awaitable[Any]]], Awaitable[Any]]


async def rerun_from(
    patiently: Patiently, db: Database, log: Log, rng: random.Random, job: UUID, new: UUID
) -> UUID | None:
    """Run a job again from one of its steps, sometimes with other inputs; return None when that is refused."""
    view = await patiently(rng, lambda: read.job(db, job))
    if view is None:
        return None
    plan = await plan_of(db, view.plan)
    step = rng.choice(plan.nodes).name
    changed = {**view.input, rng.choice(["flag", "items", "n"]): rng.choice([True, [], [1, 2]])}
    inputs = changed if rng.random() < 0.3 else None
    preview = await patiently(rng, lambda: rerun.preview(db, job, rerun.Wish("rerun", step, inputs)))
    if preview is None:
        return None
    log.reran[new] = (job, step, frozenset(preview.run_again))
    key = str(new) if rng.random() < 0.5 else None
    made: UUID | None = await patiently(rng, lambda: rerun.rerun(db, job, new, from_step=step, inputs=inputs, key=key))
    return made


def check_reruns(tables: Tables, log: Log) -> list[str]:
    """Return every complaint."""
    wrong: list[str] = []
    for new, (old, step, told) in log.reran.items():
        job = tables.jobs.get(new)
        plan = None if job is None else PLANS.get(job["plan"])
        if job is None or plan is None or old not in tables.jobs:
            continue
        first = {step} | undone_nodes(tables, plan, old, job)
        is_changed = _inputs(tables, old) != _inputs(tables, new)
        expected = _must_run(plan, first, tables.steps[old], is_changed=is_changed)
        if told != expected:
            wrong.append(f"re-run {new} was to run {sorted(expected)}, and {sorted(told)} was told")
        rows = {row["no"]: row for row in tables.steps[new]}
        moved = {
            plan.nodes[rows[event["no"]]["node"]].name
            for event in tables.events[new]
            if event["no"] is not None and event["type"] not in _NO_WORK
        }
        if moved - expected:
            wrong.append(f"re-run {new} ran {sorted(moved - expected)}, which was to be kept")
        if job["state"] == "COMPLETED" and expected - moved:
            wrong.append(f"re-run {new} is COMPLETED and never ran {sorted(expected - moved)}")
        before = {(row["node"], row["index"]): row for row in tables.steps[old]}
        for row in tables.steps[new]:
            is_kept = plan.nodes[row["node"]].name not in expected
            if is_kept and row["output"] != before[row["node"], row["index"]]["output"]:
                wrong.append(f"re-run {new} has another output of step {row['no']} than what it kept")
    return wrong


def _inputs(tables: Tables, job: UUID) -> dict[str, str]:
    # As text, because True and 1 are different inputs.
    return {name: repr(value) for name, value in msgspec.json.decode(tables.jobs[job]["input"]).items()}


def _after(plan: Plan, names: set[str]) -> set[str]:
    """Return these steps and the steps after them."""
    found = set(names)
    for node in plan.nodes:
        if found.intersection(node.needs):
            found.add(node.name)
    return found


def _must_run(plan: Plan, first: set[str], old: list[Any], *, is_changed: bool) -> frozenset[str]:
    """Return these steps, the steps after them, the unfinished steps, and the approvals that those need, with what
    follows them.

    They are found forwards, while the engine finds them in its tables.
    """
    approvals = {node.name for node in plan.nodes if node.kind is NodeKind.APPROVAL}
    found = _after(plan, first | (approvals if is_changed else set()))
    while more := {name for name in approvals - found if found & (_after(plan, {name}) - {name})}:
        found = _after(plan, found | more)
    unfinished = {
        plan.nodes[row["node"]].name for row in old if row["index"] is None and StepState(row["state"]) not in STEP_DONE
    }
    return frozenset(found | unfinished)
