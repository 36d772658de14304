"""One step's output, for `windlass result --step`: asked at the database or at a server."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from windlass.app.windlass import Windlass
from windlass.core.errors import NotFound
from windlass.store.artifact import Ref
from windlass.store.plans import plan_of
from windlass.views import job_graph, read
from windlass.views.explain import step_name
from windlass.views.fan_output import FanOutput


class LocalStepOutput:
    """The part of a local desk that reads outputs."""

    _windlass: Windlass

    async def step_output(self, job_id: UUID, step: str) -> Any:
        """What the step returned; of a fan-out, the list of what its children returned."""
        db, artifacts = self._windlass.db, self._windlass.artifacts
        plan = await plan_of(db, (await read.job(db, job_id)).plan)
        found = next((row for row in await read.steps(db, job_id) if step_name(plan, row) == step), None)
        if found is None:
            raise no_step(job_id, step, [node.name for node in plan.nodes])
        held = await job_graph.output_ref(db, artifacts, job_id, found.no)
        match held:
            case bytes():
                return msgspec.json.decode(held)
            case Ref():
                return msgspec.json.decode(await artifacts.get(held))
            case FanOutput():
                return msgspec.json.decode(await held.part(0, held.size))


class RemoteStepOutput:
    """The part of a remote desk that reads outputs."""

    _client: Any
    _means: Any

    async def step_output(self, job_id: UUID, step: str) -> Any:
        """What the step returned; of a fan-out, the list of what its children returned."""
        from windlass.client import flows

        names: list[str] = []
        async for one in self._client.job(job_id).steps():
            name = one.step if one.index is None else f"{one.step}[{one.index}]"
            if name == step:
                return await self._client.run(flows.step_output(self._means, job_id, one.no))
            if one.index is None:
                names.append(name)
        raise no_step(job_id, step, names)


def no_step(job_id: UUID, step: str, known: list[str]) -> NotFound:
    """The refusal of a step that the job does not have."""
    return NotFound(f"job {job_id} has no step {step}", remedy=f"Its steps are {', '.join(known)}")
