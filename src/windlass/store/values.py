"""The values that expressions refer to: a job's inputs and the outputs of its finished steps.

Only referenced values are read. A fan-out's output is the list of its children's outputs. A large output is fetched
from the artifact store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.plan import Plan
from windlass.core.states import StepState
from windlass.core.template import Resolver, plan_templates
from windlass.core.visibility import Reader
from windlass.store.artifact import Artifacts, ref_in
from windlass.store.database import Database
from windlass.store.outputs import fetch_or_refuse

Wanted = tuple[UUID, Plan, frozenset[str]]


async def outputs_of(
    db: Database, artifacts: Artifacts, plan: Plan, job_id: UUID, names: Iterable[str], reader: Reader
) -> dict[str, Any]:
    """Return the outputs of these steps by name, without steps that are not done.

    Raises OutputQuarantined if the reader may not see one of them.
    """
    found = await outputs_of_many(db, artifacts, [(job_id, plan, frozenset(names))], reader)
    return found[0]


async def outputs_of_many(
    db: Database, artifacts: Artifacts, wanted: Sequence[Wanted], reader: Reader
) -> list[dict[str, Any]]:
    """Return the outputs of steps of several jobs, as `outputs_of` does for one."""
    numbers = [(job_id, plan.number[name]) for job_id, plan, names in wanted for name in sorted(names)]
    if not numbers:
        return [{} for _ in wanted]
    pairs = list(dict.fromkeys(numbers))
    async with db.connection() as connection:
        ids, nos = [job_id for job_id, _ in pairs], [no for _, no in pairs]
        rows = await fetch_or_refuse(connection, "step_outputs_many", reader, ids, nos)
        texts: dict[tuple[UUID, int], str | list[str]] = {}
        for row in rows:
            key = (row["job_id"], row["no"])
            if row["state"] == StepState.COMPLETED and row["fan"] is not None:
                children = await fetch_or_refuse(connection, "step_fan_outputs", reader, *key)
                texts[key] = [child["output"] for child in children]
            elif row["output"] is not None:
                texts[key] = row["output"]
    values = {key: await value_of(artifacts, text) for key, text in texts.items()}
    return [
        {name: values[key] for name in names if (key := (job_id, plan.number[name])) in values}
        for job_id, plan, names in wanted
    ]


async def output_of(
    db: Database,
    artifacts: Artifacts,
    resolver: Resolver,
    plan: Plan,
    job_id: UUID,
    inputs: Any,
    caller: str,
    reader: Reader,
) -> Any:
    """Return the output of a completed job: the recipe's output template over its inputs and its steps' outputs."""
    template = plan_templates(plan).output
    outputs = await outputs_of(db, artifacts, plan, job_id, template.steps, reader)
    return await resolver.resolve_async(template, scope(inputs, outputs), caller)


async def value_of(artifacts: Artifacts, text: str | list[str]) -> Any:
    """Return the value of an output, or of each output of a list. A large one is fetched."""
    if isinstance(text, list):
        return [await value_of(artifacts, one) for one in text]
    value = msgspec.json.decode(text)
    ref = ref_in(value)
    return value if ref is None else msgspec.json.decode(await artifacts.get(ref))


def scope(inputs: Any, outputs: dict[str, Any], *, item: str | None = None, index: int | None = None) -> dict[str, Any]:
    """Return the values of the names in an expression."""
    values: dict[str, Any] = {
        "inputs": inputs,
        "steps": {name: {"outputs": value} for name, value in outputs.items()},
    }
    if index is not None:
        values["item"] = None if item is None else msgspec.json.decode(item)
        values["index"] = index
    return values
