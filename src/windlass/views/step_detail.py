"""All details of one step: state, attempts, logs, inputs, costs, provider job, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import msgspec

from windlass.core.errors import BadExpression, NotFound, OutputQuarantined, Unavailable
from windlass.core.plan import Plan
from windlass.core.states import STEP_DONE, StepState
from windlass.core.template import Resolver, plan_templates
from windlass.core.visibility import Content, Reader, is_visible
from windlass.pure.expected import Expected, expected_of
from windlass.store.artifact import ref_in
from windlass.store.database import Database
from windlass.store.outputs import fetch_or_refuse, fetchrow
from windlass.store.plans import plan_of
from windlass.store.statements import sql
from windlass.store.values import scope
from windlass.views.attempts import AttemptView, LogLine, attempts, logs
from windlass.views.costs import CostView
from windlass.views.explain import Reason, reason_of, step_name
from windlass.views.read import JobView, StepView, view_of
from windlass.views.work import WorkView

InputsState = Literal["resolved", "template", "large", "hidden"]

ATTEMPTS_MAX = 200
# Larger inputs are not shown, and the outputs for them are not read.
INPUTS_BYTES_MAX = 64 * 1024
_FAN_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Awaited:
    """The event that a step waits for: its required content, and the parts that the recipe reads."""

    event: str
    match: Any
    expected: Expected


@dataclass(frozen=True, slots=True)
class StepDetail:
    """One step. `inputs` are the handler's arguments, or the recipe's template while the arguments are not known."""

    plan: Plan
    step: StepView
    key: str
    attempts: list[AttemptView]
    logs: list[LogLine]
    work: WorkView | None
    costs: Sequence[CostView]
    why: Reason | None
    inputs: Any
    inputs_state: InputsState
    awaited: Awaited | None


async def step(db: Database, resolver: Resolver, job: JobView, no: int) -> StepDetail:
    """Read a step of a job that was already read."""
    plan = await plan_of(db, job.plan)
    async with db.connection() as connection:
        row = await fetchrow(connection, "attempt_step", Reader.CALLER, job.id, no)
        if row is None:
            raise NotFound(f"job {job.id} has no step {no}", remedy="Its steps are listed under /steps")
        costs = [CostView(*one) for one in await connection.fetch(sql("attempt_costs"), job.id, no)]
        work = await connection.fetchrow(sql("attempt_work"), job.id, no)
        wait = await connection.fetchrow(sql("waits_get"), job.id, no) if plan.has_events else None
    found = view_of(StepView, row)
    inputs, state = await _inputs(db, resolver, job, plan, found)
    return StepDetail(
        plan=plan,
        step=found,
        key=f"{job.id}/{step_name(plan, found)}",
        attempts=await attempts(db, job.id, no=no, limit=ATTEMPTS_MAX),
        logs=await logs(db, job.id, no),
        work=None if work is None else WorkView(*work),
        costs=costs,
        why=None if found.state in STEP_DONE else await reason_of(db, job, plan, found),
        inputs=inputs,
        inputs_state=state,
        awaited=None
        if wait is None
        else Awaited(wait["name"], msgspec.json.decode(wait["match"]), expected_of(plan, found.node)),
    )


async def _inputs(
    db: Database, resolver: Resolver, job: JobView, plan: Plan, found: StepView
) -> tuple[Any, InputsState]:
    node = plan.nodes[found.node]
    template = plan_templates(plan).nodes[found.node].with_
    is_fan = node.each is not None and found.index is None
    if found.item is not None and not is_visible(Content.ITEM, Reader.CALLER, job.state, found.state):
        return None, "hidden"
    # A fan-out's template is for its children.
    try:
        outputs = None if is_fan else await _outputs(db, plan, job.id, sorted(template.steps))
    except OutputQuarantined:
        return None, "hidden"
    if outputs is None:
        return _bounded(node.with_, "template")
    item = None if found.item is None else msgspec.json.encode(found.item).decode()
    values = scope(job.input, outputs, item=item, index=found.index)
    try:
        return _bounded(await resolver.resolve_async(template, values, job.caller), "resolved")
    except (BadExpression, Unavailable):
        return _bounded(node.with_, "template")


async def _outputs(db: Database, plan: Plan, job_id: UUID, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the outputs of these steps by name; None if one is missing yet or too large to read."""
    if not names:
        return {}
    numbers = [plan.number[name] for name in names]
    found: dict[str, Any] = {}
    async with db.connection() as connection:
        ids = [job_id] * len(numbers)
        rows = await fetch_or_refuse(connection, "step_outputs_many", Reader.CALLER, ids, numbers)
        for row in rows:
            name = plan.nodes[row["no"]].name
            if row["fan"] is not None and row["state"] == StepState.COMPLETED:
                if row["fan"] > _FAN_MAX:
                    return None
                children = await fetch_or_refuse(connection, "step_fan_outputs", Reader.CALLER, job_id, row["no"])
                values = [msgspec.json.decode(child["output"]) for child in children]
                if any(map(_is_stored, values)):
                    return None
                found[name] = values
            elif row["output"] is not None:
                found[name] = msgspec.json.decode(row["output"])
                if _is_stored(found[name]):
                    return None
    return found if len(found) == len(names) else None


def _is_stored(value: Any) -> bool:
    return isinstance(value, Mapping) and ref_in(value) is not None


def _bounded(value: Any, state: InputsState) -> tuple[Any, InputsState]:
    return (None, "large") if len(msgspec.json.encode(value)) > INPUTS_BYTES_MAX else (value, state)
