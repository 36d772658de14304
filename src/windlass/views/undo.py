"""The undo of a job, before it runs and while it runs: which effects are undone, in which order, and which stay."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import asyncpg

from windlass.core.errors import NotFound
from windlass.core.plan import Node, Plan, UndoMode, UndoOrder
from windlass.core.states import JobState, StepState
from windlass.core.undo import Effects, effects_of, undo_plan
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql
from windlass.store.undo import UndoPart, record
from windlass.views.read import JobView


@dataclass(frozen=True, slots=True)
class UndoStep:
    """An effect and its undo. `state` and `undo_job` are None while no undo job has it."""

    no: int
    step: str
    run: str
    needs: tuple[str, ...]
    state: StepState | None = None
    undo_job: UUID | None = None


@dataclass(frozen=True, slots=True)
class UndoView:
    """The undo of a job: the steps in the order in which they are undone, and the effects that nothing removes."""

    order: UndoOrder
    mode: UndoMode
    undo_jobs: tuple[UUID, ...]
    steps: tuple[UndoStep, ...]
    finals: tuple[str, ...]


def effects(job: JobView) -> Effects:
    """Return what became of the effects of a job's steps after it ended."""
    state, _, asked = (job.undo_state or "").partition(" ")
    return effects_of(JobState(state) if state else None, may_stand=job.has_kept_effects, is_asked=bool(asked))


async def undo_view(db: Database, job_id: UUID) -> UndoView:
    """Read the undo of a job. Before the job has ended it shows what a cancel would undo now."""
    async with db.connection() as connection:
        row = await connection.fetchrow(sql("job_row"), job_id)
        if row is None:
            raise NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
        plan = await read_plan(connection, row["plan"])
        found = await record(connection, job_id, plan)
        steps: dict[int, UndoStep] = {}
        for part in found.parts:
            # A later undo job continues an earlier one, so its word counts. The order stays that of the first.
            steps |= {one.no: one for one in await _of_part(connection, part)}
    if waiting := [one for one in found.stands if one.no not in steps]:
        nodes = undo_plan(plan, waiting).nodes
        planned = [one for node in nodes if (one := _step(node)) is not None]
        steps |= {one.no: one for one in planned}
    return UndoView(
        plan.undo_order,
        plan.undo,
        tuple(part.undo_job for part in found.parts),
        tuple(steps.values()),
        tuple(found.finals),
    )


async def _of_part(connection: asyncpg.Connection, part: UndoPart) -> list[UndoStep]:
    plan: Plan = await read_plan(connection, part.plan)
    rows = await connection.fetch(sql("undo_steps"), part.undo_job)
    return [
        step
        for row in rows
        if (step := _step(plan.nodes[row["no"]], StepState(row["state"]), part.undo_job)) is not None
    ]


def _step(node: Node, state: StepState | None = None, undo_job: UUID | None = None) -> UndoStep | None:
    """Return the undo of one effect, or None for a node that only joins others."""
    return None if node.undoes is None else UndoStep(node.undoes, node.name, node.run, node.needs, state, undo_job)
