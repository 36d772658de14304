"""Undo: what people, workers and the engine do about the undo job of a job (`core/undo.py`).

a job ends badly ─► [job, undo job]                       one commit (store/undo.py)
an attempt reports after that end ─► recorded; if it succeeded, its effect is undone too
no attempt can act any more ─► the undoer releases the undo job
a person says go, or asks for the undo of any finished job ─► `start`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.bell import UndoDue
from windlass.core.draft import Draft
from windlass.core.errors import WrongState
from windlass.core.hold import Hold
from windlass.core.outcome import Report, Success
from windlass.core.plan import Plan
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.core.undo import release
from windlass.engine.control import check_actor, unknown
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import plan_of, read_plan
from windlass.store.statements import sql
from windlass.store.undo import Standings, insert, next_part, parts_of, prepare, record


class StartedUndo(NamedTuple):
    """The answer to a request to undo a job. `is_new` is False if the undo was already under way."""

    undo_job: UUID
    is_new: bool


async def start(db: Database, job_id: UUID, *, source: str = "caller", request_id: str | None = None) -> StartedUndo:
    """Undo a finished job: let its undo job go, or make one if effects stand. Raises WrongState if none does."""
    check_actor(source, request_id)

    async def operation(connection: asyncpg.Connection) -> StartedUndo:
        async with connection.transaction():
            plan = await _ended(connection, job_id)
            parts = await parts_of(connection, job_id)
            last = parts[-1] if parts else None
            if last is not None and last.state not in JOB_TERMINAL:
                return StartedUndo(
                    last.undo_job, last.is_asked and await _allow(connection, last.undo_job, source, request_id)
                )
            now = await connection.fetchval(sql("undo_now"))
            new = await prepare(connection, job_id, plan, now, is_told=True)
            if new is None:
                raise WrongState(
                    f"no effect of job {job_id} stands that could be undone",
                    remedy="`windlass undo --plan` shows the effects of a job",
                )
            await insert(connection, new)
        return StartedUndo(new.undo_job, True)

    return await db.run(operation)


async def _ended(connection: asyncpg.Connection, job_id: UUID) -> Plan:
    """Lock a job that has ended, and return its plan."""
    await drafts.lock(connection, [job_id])
    row = await connection.fetchrow(sql("job_row"), job_id)
    if row is None or row["deleted_at"] is not None:
        raise unknown(job_id)
    if JobState(row["state"]) not in JOB_TERMINAL:
        raise WrongState(f"job {job_id} is {row['state']}", remedy="Cancel it: that undoes its effects")
    return await read_plan(connection, row["plan"])


async def _allow(connection: asyncpg.Connection, undo_job: UUID, source: str, request_id: str | None) -> bool:
    await connection.execute(sql("undo_allowed"), undo_job)
    return await _release(connection, undo_job, Hold.ASK, source, request_id)


async def _release(
    connection: asyncpg.Connection, undo_job: UUID, hold: Hold, source: str, request_id: str | None = None
) -> bool:
    await drafts.lock(connection, [undo_job])
    draft = await drafts.load_open(connection, undo_job, (StepState.HELD,), lambda h: read_plan(connection, h))
    if draft is None:
        return False
    draft.source = source
    draft.correlation_id = request_id
    is_changed = release(draft, hold)
    await drafts.write(connection, [draft])
    return is_changed


class Owned(NamedTuple):
    """What became of the effects of a job that runs again.

    `undone` are the nodes whose effects are gone, with everything that used them: they must run again. `moves` are the
    steps (node and index) whose effects stand; the new job keeps their results, and answers for them from then on.
    """

    undone: frozenset[int] = frozenset()
    moves: frozenset[tuple[int, int | None]] = frozenset()


async def owned(connection: asyncpg.Connection, job_id: UUID, state: JobState, plan: Plan) -> Owned:
    """Return what became of a job's effects. Raises WrongState while that is not decided."""
    if plan.is_undo:
        await _check_resume(connection, job_id)
    if not plan.may_undo:
        return Owned()
    found = await record(connection, job_id, plan)
    for part in found.parts:
        if part.state not in JOB_TERMINAL:
            told = f"the effects of job {job_id} are to be undone by job {part.undo_job}, which is {part.state}"
            raise WrongState(told, remedy="Wait for its end, or cancel it to keep the effects")
    if found.parts and found.parts[-1].state not in (JobState.COMPLETED, JobState.CANCELLED):
        told = f"the undo of job {job_id} failed, so some of its effects stand"
        raise WrongState(
            told, remedy=f"Retry the undo job {found.parts[-1].undo_job} first, or run the job from its start"
        )
    gone = {row.node for row in found.past if found.undone.get(row.no) is StepState.COMPLETED}
    undone = frozenset(gone).union(*(plan.descendants[no] for no in gone))
    if state is JobState.COMPLETED:
        # Its effects are wanted: they stay its own, whatever becomes of the new job.
        return Owned(undone)
    indexes = {row.no: row.index for row in found.past}
    return Owned(undone, frozenset((one.node, indexes[one.no]) for one in found.stands))


async def _check_resume(connection: asyncpg.Connection, undo_job: UUID) -> None:
    of = await connection.fetchval(sql("undo_of"), undo_job)
    if of is None:
        raise WrongState("the job that it undoes is gone", remedy="Retention has removed that job")
    if await connection.fetchval(sql("undo_is_waiting"), of):
        raise WrongState(f"attempts of job {of} may still act", remedy="Try again when they have ended")
    for part in await parts_of(connection, of):
        if part.state not in JOB_TERMINAL:
            raise WrongState(f"job {part.undo_job} undoes job {of} already", remedy="Wait for its end")


async def resumed(connection: asyncpg.Connection, undo_job: UUID, new_job: UUID) -> None:
    """Record that another undo job continues this one."""
    of = await connection.fetchval(sql("undo_of"), undo_job)
    await connection.execute(sql("undo_put"), of, next_part(await parts_of(connection, of)), new_job, False, False)


async def moved(connection: asyncpg.Connection, job_id: UUID, new_job: UUID, effects: list[int]) -> list[int]:
    """Record that the new job took these effects over; return those that it did take. Only the first job takes them."""
    if not effects:
        return []
    is_first = await connection.fetchval(sql("undo_moved_put"), job_id, new_job)
    return effects if is_first else []


async def look(db: Database, job_id: UUID) -> tuple[Plan, Standings]:
    """Return which effects of a job stand now, and its undo jobs."""
    async with db.connection() as connection:
        row = await connection.fetchrow(sql("job_row"), job_id)
        if row is None:
            raise unknown(job_id)
        plan = await read_plan(connection, row["plan"])
        return plan, await record(connection, job_id, plan)


async def end_waits(connection: asyncpg.Connection, grace_s: float, limit: int, source: str) -> int:
    """Let undo jobs go that wait for attempts which can act no more. Return how many were released."""
    await connection.execute(sql("undo_attempts_lost"), grace_s)
    rows = await connection.fetch(sql("undo_waiting"), limit)
    for row in rows:
        async with connection.transaction():
            # The lock of the job orders this after a report that arrives now.
            await drafts.lock(connection, [row["job_id"], row["undo_job"]])
            await connection.execute(sql("undo_waited"), row["undo_job"])
            await _release(connection, row["undo_job"], Hold.ATTEMPT, source)
    return len(rows)


def is_late(draft: Draft, report: Report) -> bool:
    """Return whether a refused report tells of an attempt that was in progress when its job ended."""
    is_known = draft.is_finished and 0 <= report.node < len(draft.plan.nodes)
    return is_known and draft.plan.nodes[report.node].undo is not None


async def note_late(connection: asyncpg.Connection, late: Iterable[tuple[Draft, Report]]) -> None:
    """Record the ends of attempts whose jobs have ended, in the transaction that locks the jobs.

    The undo step of the attempt finds what became of it. A success that arrives after the undo step has looked, because
    the worker was taken for lost, gets an undo job of its own.
    """
    for draft, report in late:
        at = (report.job_id, report.no, report.attempt, report.worker)
        if isinstance(report.outcome, Success):
            before = await connection.fetchval(sql("undo_attempt_done"), *at, report.outcome.output)
            if before == "PASSED":
                new = await prepare(connection, report.job_id, draft.plan, draft.now, late=report.no)
                if new is not None:
                    await insert(connection, new)
            is_over = before == "WAITED"
        else:
            is_over = await connection.fetchval(sql("undo_attempt_over"), *at) is not None
        if is_over:
            connection.ring(UndoDue())


async def undo_child(db: Database, undo_job: UUID, no: int) -> JobState | None:
    """Undo the child job that a step of an undo job stands for. Return the state of the child's undo; None: no effects.

    A child that is still open was told to cancel; its own end starts its undo. Call this again until it has ended.
    """
    node = await _node_undone(db, undo_job, no)

    async def operation(connection: asyncpg.Connection) -> JobState | None:
        async with connection.transaction():
            child = await connection.fetchrow(sql("undo_child"), *node)
            if child is None:
                return None
            await drafts.lock(connection, [child["id"]])
            row: Any = await connection.fetchrow(sql("job_row"), child["id"])
            if JobState(row["state"]) not in JOB_TERMINAL:
                return JobState.PENDING
            plan = await read_plan(connection, row["plan"])
            if parts := await parts_of(connection, child["id"]):
                if parts[-1].is_asked:
                    await _allow(connection, parts[-1].undo_job, "undo", None)
                return _worst([part.state for part in parts])
            new = await prepare(connection, child["id"], plan, await connection.fetchval(sql("undo_now")), is_told=True)
            if new is None:
                return None
            await insert(connection, new)
            return JobState.PENDING

    return await db.run(operation)


def _worst(states: list[JobState]) -> JobState:
    """Return the state that decides: of the last undo, or of one that is still open."""
    return next((state for state in states if state not in JOB_TERMINAL), states[-1])


async def _node_undone(db: Database, undo_job: UUID, no: int) -> tuple[UUID, int]:
    async with db.connection() as connection:
        of = await connection.fetchval(sql("undo_of"), undo_job)
        row = await connection.fetchrow(sql("job_row"), undo_job)
    if of is None or row is None:
        raise unknown(undo_job)
    undoes = (await plan_of(db, row["plan"])).nodes[no].undoes
    if undoes is None:
        raise WrongState(f"step {no} of job {undo_job} undoes nothing")
    return of, undoes
