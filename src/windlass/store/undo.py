"""Inserts the undo job of a job, in the transaction that ends the job.

The rows of the job's steps are the record of its effects; `core/undo.py` decides which stand and makes the plan. The
caller holds the lock of the job's row, so the rows stand still. A job without standing effects gets no undo job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.bell import RouteDue, UndoDue, WorkQueued
from windlass.core.birth import births, first_state
from windlass.core.caller import CRITICAL
from windlass.core.draft import Draft
from windlass.core.effect import StartUndo
from windlass.core.gatekeeping import AUTHORISED
from windlass.core.hold import Hold
from windlass.core.lane import lane_of
from windlass.core.plan import NodeKind, Plan
from windlass.core.states import JobState, StepState
from windlass.core.undo import (
    Past,
    Standing,
    finals,
    holds,
    is_waited_for,
    may_succeed_late,
    standing,
    undo_id,
    undo_labels,
    undo_plan,
)
from windlass.core.verdict import UNDO
from windlass.store.columns import encode
from windlass.store.plans import PLANS, read_plan
from windlass.store.statements import bound, sql


class UndoPart(NamedTuple):
    """An undo job of a job."""

    part: int
    undo_job: UUID
    is_waiting: bool
    is_asked: bool
    state: JobState
    plan: str


class Standings(NamedTuple):
    """The effects of a job, as its rows tell: what stands now, in the order of its undo."""

    stands: list[Standing]
    finals: list[str]
    undone: dict[int, StepState]
    parts: list[UndoPart]
    past: list[Past]
    rows: Sequence[asyncpg.Standings]


class UndoWriter:
    """Inserts undo jobs."""

    def touches(self, draft: Draft) -> bool:
        """Return whether the draft's job ended badly and may have effects."""
        return bool(draft.effects_of(StartUndo))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Insert the undo job of each draft that needs one. All commits store equal plans in one order: no deadlock."""
        found = [
            await prepare(connection, draft.job.id, draft.plan, draft.now)
            for draft in drafts
            if not draft.keeps_effects
        ]
        for new in sorted((new for new in found if new is not None), key=lambda new: (new.plan.hash, new.undo_job)):
            await insert(connection, new)
        for draft in drafts:
            if draft.keeps_effects and (await record(connection, draft.job.id, draft.plan)).stands:
                await connection.execute(sql("undo_kept_put"), draft.job.id)


class NewUndo(NamedTuple):
    """An undo job to be inserted."""

    job_id: UUID
    undo_job: UUID
    plan: Plan
    hold: Hold
    part: int


async def prepare(
    connection: asyncpg.Connection,
    job_id: UUID,
    plan: Plan,
    now: datetime,
    *,
    is_told: bool = False,
    late: int | None = None,
) -> NewUndo | None:
    """Decide the undo job for the effects of this job that stand; None if nothing stands.

    `is_told` says that a person asked for it, so that it need not ask again. `late` is a step that succeeded only after
    an earlier undo job had passed it; then the undo is for this step alone.
    """
    found = await record(connection, job_id, plan, late=late)
    open_ = [row for row in found.past if may_succeed_late(plan, row)]
    if open_:
        await _put_attempts(connection, job_id, found, open_)
    stands = found.stands if late is None else [one for one in found.stands if one.no == late]
    if not stands:
        return None
    hold = holds(plan, may_act=any(_is_waited(found, row) for row in open_))
    part = next_part(found.parts)
    return NewUndo(
        job_id, undo_id(job_id, part, now), undo_plan(plan, stands), hold & ~Hold.ASK if is_told else hold, part
    )


async def record(connection: asyncpg.Connection, job_id: UUID, plan: Plan, *, late: int | None = None) -> Standings:
    """Read which effects of a job stand. Effects that an undo job has undone, or is to undo, are left out."""
    nodes = [no for no, n in enumerate(plan.nodes) if n.may_leave_effects or n.savepoint or n.effect is not None]
    rows = await connection.fetch(sql("undo_past"), job_id, nodes)
    ends = {row["no"]: row["seq"] for row in await connection.fetch(sql("undo_ends"), job_id)}
    done_late = {row["no"] for row in await connection.fetch(sql("undo_done"), job_id)}
    taken: set[int] = set()
    if any(row["attempt"] == 0 and row["state"] == StepState.COMPLETED for row in rows):
        taken = set(await connection.fetchval(sql("undo_taken_over"), job_id))
    past = [
        Past(
            row["no"],
            row["node"],
            row["index"],
            StepState.COMPLETED if row["no"] in done_late else StepState(row["state"]),
            row["attempt"],
            ends.get(row["no"]),
            row["no"] in taken,
        )
        for row in rows
    ]
    parts = await parts_of(connection, job_id)
    covered = await _covered(connection, parts)
    children = await _children(connection, job_id, plan, past)
    stands = [one for one in standing(plan, past, children) if one.no == late or covered.get(one.no) in _LEFT]
    if await connection.fetchval(sql("undo_is_moved"), job_id) is not None:
        stands = []
    return Standings(stands, finals(plan, past), covered, parts, past, rows)


# The states of undo steps that leave the effect to another undo job. None: no undo job has it.
_LEFT = frozenset({
    None, StepState.FAILED, StepState.CANCELLED, StepState.ABANDONED, StepState.DENIED, StepState.QUARANTINED,
})  # fmt: skip


def next_part(parts: Sequence[UndoPart]) -> int:
    """Return the number of the next undo job of a job."""
    return parts[-1].part + 1 if parts else 0


async def parts_of(connection: asyncpg.Connection, job_id: UUID) -> list[UndoPart]:
    """Return the undo jobs of a job, the first one first."""
    rows = await connection.fetch(sql("undo_parts"), job_id)
    return [
        UndoPart(r["part"], r["undo_job"], r["is_waiting"], r["is_asked"], JobState(r["state"]), r["plan"])
        for r in rows
    ]


async def _covered(connection: asyncpg.Connection, parts: Sequence[UndoPart]) -> dict[int, StepState]:
    """Return the states of the undo steps, by the number of the step that each undoes. The last undo job counts."""
    found: dict[int, StepState] = {}
    for part in parts:
        nodes = (await read_plan(connection, part.plan)).nodes
        for row in await connection.fetch(sql("undo_steps"), part.undo_job):
            if (undoes := nodes[row["no"]].undoes) is not None:
                found[undoes] = StepState(row["state"])
    return found


async def _children(connection: asyncpg.Connection, job_id: UUID, plan: Plan, past: Sequence[Past]) -> frozenset[int]:
    """Return the steps whose child jobs may have left effects."""
    if not any(node.kind is NodeKind.RECIPE for node in plan.nodes):
        return frozenset()
    kept = {(row.node, row.index): row.no for row in past if row.is_taken_over}
    found: set[int] = set()
    for row in await connection.fetch(sql("undo_child_plans"), job_id):
        no = row["no"] if row["is_own"] else kept.get((row["node"], row["index"]))
        if no is not None and (await read_plan(connection, row["plan"])).may_undo:
            found.add(no)
    return frozenset(found)


def _is_waited(found: Standings, row: Past) -> bool:
    """Return whether the undo job has a step for the attempt, and waits for it."""
    return is_waited_for(row) and any(one.no == row.no for one in found.stands)


async def _put_attempts(connection: asyncpg.Connection, job_id: UUID, found: Standings, late: Sequence[Past]) -> None:
    rows: Mapping[int, Any] = {row["no"]: row for row in found.rows}
    await connection.execute(
        sql("undo_attempts_put"),
        job_id,
        [row.no for row in late],
        [row.attempt for row in late],
        [rows[row.no]["worker"] for row in late],
        [rows[row.no]["wake_at"] for row in late],
        ["WAITED" if _is_waited(found, row) else "PASSED" for row in late],
    )


async def insert(connection: asyncpg.Connection, new: NewUndo) -> None:
    """Insert the undo job."""
    job_id, undo_job, plan, hold, part = new
    await connection.execute(sql("plan_put"), plan.hash, plan.canonical.decode())
    PLANS.keep(plan)
    row = await connection.fetchrow(sql("undo_job_row"), job_id)
    labels = {} if row["labels"] is None else msgspec.json.decode(row["labels"])
    first = births(plan, hold)
    await connection.fetch(
        *bound(
            "job_submit_one",
            id=undo_job, recipe=plan.recipe, plan=plan.hash, state=first_state([one.state for one in first]),
            caller=row["caller"], priority=CRITICAL, steps=len(first), input=encode({"undo_of": str(job_id)}),
            labels=encode(undo_labels(job_id, labels)), idempotency_key=f"undo:{job_id}:{part}", body_hash=plan.hash,
            correlation_id=row["correlation_id"] or (str(undo_job) if row["is_served"] else None),
            parent_job=None, parent_no=None, parent_attempt=None, depth=0, retry_of=None,
            # An undo never expires: an effect must not stay only because nobody looked in time.
            deadline=None, ttl=None, is_ttl_default=False, told=encode({"holds": int(hold)}) if hold else None,
            step_states=[str(one.state) for one in first], step_queues=[node.queue for node in plan.nodes],
            step_unmet=[one.unmet for one in first], step_timeouts=[node.timeout_s for node in plan.nodes],
            step_lanes=[lane_of(node, row["caller"]) for node in plan.nodes],
            step_holds=[int(one.holds) for one in first],
            judged_by=None, policy=AUTHORISED, rule=UNDO, is_ahead=False, channels=[], payloads=[],
        )
    )  # fmt: skip
    await connection.execute(sql("undo_put"), job_id, part, undo_job, Hold.ATTEMPT in hold, Hold.ASK in hold)
    queues = {node.queue for node, one in zip(plan.nodes, first, strict=True) if one.state is StepState.QUEUED}
    if queues:
        connection.ring(WorkQueued(tuple(sorted(queues))), RouteDue())
    elif Hold.ATTEMPT in hold:
        connection.ring(UndoDue())
