"""What the tests of lines and budgets share: who holds what, and whether all of it adds up."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg

from tests.engine.rig import Rig, plan, task
from windlass.core.outcome import Report, Success
from windlass.core.plan import Node, Plan
from windlass.core.slot import SlotState, slot_state
from windlass.core.states import StepState
from windlass.engine import providers, settle
from windlass.engine.providers import ProviderRow
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.views import read

_SLOTS = "SELECT * FROM windlass.slots ORDER BY job_id, no"
_BUDGETS = """
    SELECT b.*,
           (SELECT coalesce(sum(s.cost), 0) FROM windlass.slots s JOIN windlass.jobs j ON j.id = s.job_id
            WHERE s.state = 'HELD' AND CASE b.scope WHEN 'caller' THEN s.caller = b.name
                WHEN 'recipe' THEN s.recipe = b.name ELSE b.name = ANY (windlass.lineage(j.id)) END) AS held,
           (SELECT coalesce(sum(c.amount), 0) FROM windlass.costs c JOIN windlass.jobs j ON j.id = c.job_id
            WHERE CASE b.scope WHEN 'caller' THEN j.caller = b.name
                WHEN 'recipe' THEN j.recipe = b.name ELSE b.name = ANY (windlass.lineage(j.id)) END) AS paid
    FROM windlass.budgets b
"""


def call(name: str = "a", *needs: str, provider: str = "fal", **given: Any) -> Node:
    return task(name, *needs, provider=provider, **given)


def one(**given: Any) -> Plan:
    """A job of one step that stands in line."""
    return plan(call(**given))


def keyed(provider: str = "", **given: Any) -> Plan:
    """The same for the key that the input `key` names."""
    return plan(call(provider=provider, concurrency="${inputs.key}", **given))


async def declare(db: Database, name: str = "fal", concurrency: int = 1, rate: float = 1e6, **given: Any) -> None:
    await providers.sync(db, [ProviderRow(name, concurrency, rate, **given)])


async def slots(db: Database) -> list[asyncpg.Record]:
    return await db.run(lambda connection: connection.fetch(_SLOTS))


async def slot(db: Database, job: UUID, no: int = 0) -> str | None:
    states = {(row["job_id"], row["no"]): row["state"] for row in await slots(db)}
    return states.get((job, no))


async def holders(db: Database) -> list[UUID]:
    return [row["job_id"] for row in await slots(db) if row["state"] == "HELD"]


async def granted(rig: Rig) -> list[UUID]:
    """Let the engine do all that it can, and claim what it let go; the jobs in the order of their claims."""
    await rig.loops.run_until_idle()
    return [claimed.job_id for claimed in await rig.claim(500)]


async def end(rig: Rig, job: UUID) -> None:
    """Complete the job's one step, which a worker has or may claim."""
    [step] = await read.steps(rig.db, job)
    attempt = step.attempt
    if step.state is StepState.QUEUED:
        [claimed] = [claimed for claimed in await rig.claim(500) if claimed.job_id == job]
        attempt = claimed.attempt
    report = Report(job, 0, attempt, Success("1"))
    assert (await settle.settle(rig.db, [report], spread=lambda: 0.0)).took_effect == (True,)


async def drain(rig: Rig, count: int) -> list[UUID]:
    """The next jobs to go, one after the other."""
    order: list[UUID] = []
    for _ in range(count):
        await rig.loops.run_until_idle()
        order.append((await rig.run_one()).job_id)
    return order


async def check(db: Database) -> None:
    """No line has more held than there is, every row follows from its step, every budget is the sum of its rows."""
    rows, limits, budgets, steps = await db.run(_read)
    held: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    for row in rows:
        if row["state"] == "HELD":
            held[row["provider"]] += min(row["places"], limits.get(row["provider"], 1))
            keys[row["key"]] += row["takes"]
    assert all(count <= limits.get(name, 1) for name, count in held.items() if name), (held, limits)
    assert all(keys[row["key"]] <= row["most"] for row in rows if row["state"] == "HELD" and row["key"]), keys
    assert all((row["fence"] > 0) >= (row["state"] == "HELD") for row in rows)
    assert {(row["job_id"], row["no"]): row["state"] for row in rows} == steps
    for budget in budgets:
        assert budget["reserved"] == budget["held"], budget
        assert budget["spent"] == budget["paid"], budget


async def _read(connection: asyncpg.Connection) -> tuple[Any, Any, Any, Any]:
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        rows = await connection.fetch(_SLOTS)
        limits = dict(await connection.fetch("SELECT name, concurrency FROM windlass.providers"))
        budgets = await connection.fetch(_BUDGETS)
        found = await connection.fetch("SELECT job_id, no FROM windlass.steps")
        wanted: dict[UUID, set[int]] = {}
        for row in found:
            wanted.setdefault(row["job_id"], set()).add(row["no"])
        steps: dict[tuple[UUID, int], SlotState] = {}
        for draft in await drafts.load(connection, wanted, lambda plan_hash: read_plan(connection, plan_hash)):
            for step in draft.steps.values():
                state = slot_state(draft.plan, step)
                if state is SlotState.WAITING and draft.job.is_paused:
                    state = SlotState.IDLE
                if state is not None:
                    steps[draft.job.id, step.no] = state
    return rows, limits, budgets, steps


def money(amount: str) -> Decimal:
    return Decimal(amount)
