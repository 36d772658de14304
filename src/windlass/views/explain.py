"""Explains why a step does not run, from the rows and conditions that the engine itself uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.errors import NotFound
from windlass.core.hold import Hold
from windlass.core.plan import Plan
from windlass.core.queue import is_apart, ordinary
from windlass.core.states import STEP_DONE, STEP_TERMINAL, StepState
from windlass.core.wait import WaitKind
from windlass.pure.job_failed import fault_text
from windlass.store.database import Database
from windlass.store.plans import plan_of
from windlass.store.statements import sql
from windlass.views.explain_approval import approval_reason
from windlass.views.explain_line import line_reason, work_reason
from windlass.views.handlers import missing_of
from windlass.views.read import JobView, StepView, job, steps

# The most steps of a job that are explained at once.
REASONS_MAX = 200


@dataclass(frozen=True, slots=True)
class Reason:
    """One step, its state, and a sentence: what it waits for, or why it ended."""

    step: str
    state: StepState
    because: str
    detail: dict[str, Any] = field(default_factory=dict)


def step_name(plan: Plan, step: StepView) -> str:
    """Return the step's name for people: its node's name, and its index in a fan-out."""
    name = plan.nodes[step.node].name
    return name if step.index is None else f"{name}[{step.index}]"


async def why(db: Database, job_id: UUID, step: str | None = None, *, limit: int | None = None) -> list[Reason]:
    """Explain one step, or every step of the job that is not done; the first `limit` steps, if given."""
    view = await job(db, job_id)
    plan = await plan_of(db, view.plan)
    rows = await steps(db, job_id)
    if step is not None:
        chosen = [row for row in rows if step_name(plan, row) == step]
        if not chosen:
            known = ", ".join(node.name for node in plan.nodes)
            raise NotFound(f"job {job_id} has no step {step}", remedy=f"Its steps are {known}")
    else:
        chosen = [row for row in rows if row.state not in STEP_DONE]
    states = {row.no: row.state for row in rows}
    async with db.connection() as connection:
        return [await _reason(connection, view, plan, states, row) for row in chosen[:limit]]


async def reason_of(db: Database, view: JobView, plan: Plan, row: StepView) -> Reason:
    """Explain one step that was already read. Reads only the steps that it needs."""
    async with db.connection() as connection:
        before = (*plan.nodes[row.node].needs, *plan.nodes[row.node].follows)
        needs = [plan.number[name] for name in before] if row.state is StepState.BLOCKED else []
        found = await connection.fetch(sql("attempt_states"), view.id, needs) if needs else []
        return await _reason(connection, view, plan, {one["no"]: StepState(one["state"]) for one in found}, row)


async def _reason(
    connection: asyncpg.Connection, view: JobView, plan: Plan, states: Mapping[int, StepState], row: StepView
) -> Reason:
    name = step_name(plan, row)
    if row.state is StepState.BLOCKED:
        node = plan.nodes[row.node]
        unmet = [n for n in node.needs if states[plan.number[n]] not in STEP_DONE]
        ahead = [n for n in node.follows if states[plan.number[n]] not in STEP_TERMINAL]
        parts = [f"needs {', '.join(unmet)}"] if unmet else []
        parts += [f"comes after {', '.join(ahead)}"] if ahead else []
        return Reason(name, row.state, "; ".join(parts), {"needs": [*unmet, *ahead]})
    if row.state is StepState.QUEUED:
        return await _queued(connection, view, name, row, plan.nodes[row.node].run)
    if row.state in STEP_TERMINAL:
        end = _stands(plan, row.node) if row.state is StepState.ABANDONED and plan.is_undo else _ended(row)
        return Reason(name, row.state, end, {"error": row.error} if row.error else {})
    timed: dict[str, Any] = {"wake_at": row.wake_at} if row.wake_at else {}
    found = None
    if row.state is StepState.HELD:
        found = await _held(connection, view, row)
    elif row.state is StepState.PARKED and (row.waiting_for or "").startswith(WaitKind.EXTERNAL):
        found = await work_reason(connection, view.id, row.no, _until(row))
    elif row.state is StepState.PARKED and (row.waiting_for or "").startswith(WaitKind.APPROVAL):
        found = await approval_reason(connection, view.id, row.no)
    because, detail = (_waiting(view, row), {}) if found is None else found
    if (ends := _ends_before(view, row)) is not None:
        because += f"; the job {ends[0]} before, at {ends[1]:%Y-%m-%d %H:%M:%S} UTC"
        timed["job_ends_at"] = ends[1]
    return Reason(name, row.state, because, {**timed, **detail})


def _ends_before(view: JobView, row: StepView) -> tuple[str, datetime] | None:
    """Return how and when the job ends, if that is before the step's wait is over."""
    if row.state is not StepState.PARKED or row.wake_at is None:
        return None
    ends = [("times out", view.deadline_at), ("expires", view.expires_at)]
    return min(((how, at) for how, at in ends if at is not None and at < row.wake_at), key=lambda e: e[1], default=None)


async def _queued(connection: asyncpg.Connection, view: JobView, name: str, row: StepView, handler: str) -> Reason:
    # Processes that the workers of the ordinary queue start run the suspects.
    queue = ordinary(row.queue)
    workers = await connection.fetchval(sql("read_queue_workers"), queue)
    ahead = await connection.fetchval(sql("read_queue_ahead"), row.queue, view.priority, view.id, row.no)
    detail = {"queue": row.queue, "workers": workers, "ahead": ahead}
    if not workers:
        return Reason(name, row.state, f"no worker takes from queue {queue}; start one", detail)
    if found := await missing_of(connection, {(queue, handler): None}):
        [one] = found
        detail |= {"handler": handler, "since": one.since, "worker": one.worker and str(one.worker)}
        because = f"no live worker of queue {queue} has the handler {handler}; {one.last}"
        return Reason(name, row.state, because, detail)
    many = "1,000 or more" if ahead >= 1000 else str(ahead)
    if is_apart(row.queue):
        return Reason(name, row.state, f"waits for its turn; {many} ahead of it; {_apart(row)}", detail)
    return Reason(name, row.state, f"waits for a free worker of queue {row.queue}; {many} ahead of it", detail)


_HOLDS = {
    Hold.PAUSED: "the job is paused",
    Hold.SLOT: "waits in line for its resources",
    Hold.ROUTE: "the engine has yet to resolve its condition or fan-out",
    Hold.POLICY: "the policy throttles the job and is asked again soon",
    Hold.APPROVAL: "the policy asks for an approval of the job",
    Hold.ATTEMPT: "attempts of the job that it undoes may still act",
    Hold.ASK: "a person must allow the undo: windlass undo, or cancel this job to keep the effects",
}


async def _held(connection: asyncpg.Connection, view: JobView, row: StepView) -> tuple[str, dict[str, Any]]:
    """Explain why the step is held: one sentence for each hold. The granter acts only when SLOT is the last hold."""
    holds = Hold(row.holds)
    if holds == Hold.SLOT and (found := await line_reason(connection, view.id, row.no)) is not None:
        because, detail = found
        return because, {"holds": holds.names, **detail}
    if Hold.APPROVAL in holds and (found := await approval_reason(connection, view.id, None)) is not None:
        because, detail = found
        others = [_HOLDS[hold] for hold in Hold if hold in holds and hold not in (Hold.APPROVAL, Hold.ROUTE)]
        return "; ".join([because, *others]), {"holds": holds.names, **detail}
    of_kernel = await _kernel_reason(connection, view.id) if Hold.POLICY in holds else None
    sentences = {**_HOLDS, **({} if of_kernel is None else {Hold.POLICY: of_kernel})}
    return "; ".join(sentences[hold] for hold in Hold if hold in holds), {"holds": holds.names}


async def _kernel_reason(connection: asyncpg.Connection, job_id: UUID) -> str | None:
    """Say why the kernel has not judged a new job yet. None if the policy itself holds the job."""
    row = await connection.fetchrow(sql("kernel_reason"), job_id)
    if row is None:
        return None
    if row["error"] is None:
        return f"the kernel {row['kernel']} has not judged the job yet"
    return f"the kernel {row['kernel']} does not answer, and is asked again: {row['error']}"


def _apart(row: StepView) -> str:
    return f"it runs apart, because workers died while they ran it ({row.losses} times)"


def _stands(plan: Plan, node: int) -> str:
    users = ", ".join(plan.nodes[node].needs)
    return f"its effect stands: the undo of {users}, which used it, failed; retry this job to continue"


def _ended(row: StepView) -> str:
    if row.error:
        return f"{row.error.get('code', 'error')}: {fault_text(row.error)}"
    if row.state is StepState.ABANDONED:
        return "can never run: a step that it needs failed"
    return f"is {row.state}"


def _waiting(view: JobView, row: StepView) -> str:
    what = row.waiting_for or ""
    until = _until(row)
    if row.state is StepState.RUNNING:
        alone = f"; {_apart(row)}" if is_apart(row.queue) else ""
        return f"runs on worker {row.worker}, attempt {row.attempt}{until and ', at most' + until}{alone}"
    if row.state is StepState.READY and row.fan is not None and not view.is_paused:
        return f"its {row.fan} children are added as there is room for them in the queues"
    if row.state is StepState.READY:
        return "the job is paused" if view.is_paused else "the engine is about to resolve its condition or fan-out"
    if what == WaitKind.RETRY:
        code = (row.error or {}).get("code", "error")
        return f"attempt {row.attempt} failed ({code}); tried again at {row.wake_at:%Y-%m-%d %H:%M:%S} UTC"
    if what == WaitKind.SNOOZE:
        return f"snoozed{until}"
    if what == WaitKind.TIMER:
        return f"sleeps{until}"
    if what == WaitKind.FAN:
        return f"waits for {row.unmet} of {row.fan} children"
    if what.startswith(WaitKind.CHILD):
        return "waits for its child job"
    if what.startswith(WaitKind.EVENT):
        return f"waits for the event {what.removeprefix(WaitKind.EVENT + ':')}{until}"
    if what.startswith(WaitKind.EXTERNAL):
        return f"waits for {what.removeprefix(WaitKind.EXTERNAL + ':')}{until}"
    return what or f"is {row.state}"


def _until(row: StepView) -> str:
    return f" until {row.wake_at:%Y-%m-%d %H:%M:%S} UTC" if row.wake_at else ""
