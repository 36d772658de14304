"""Budgets of jobs, recipes and callers, and the costs of attempts.

The granter reserves money when it grants a step its slot. The commit that ends the attempt spends or returns it
(`store/slots.py`). A step that costs more than is left waits until money is returned or the budget is raised.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.errors import BadInput, NotFound
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.slots import note_changes
from windlass.store.statements import sql

SCOPES = ("caller", "job", "recipe")
NAME_MAX = 500
LIST_MAX = 1_000
MOST_MAX = Decimal(10) ** 15


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A budget: its limit, the amount spent, and the amount that running attempts have reserved."""

    scope: str
    name: str
    most: Decimal
    spent: Decimal
    reserved: Decimal
    updated_at: datetime

    @property
    def left(self) -> Decimal:
        """The amount that can still be reserved. It is negative when attempts cost more than estimated."""
        return self.most - self.spent - self.reserved


async def set(db: Database, scope: str, name: str, most: Decimal | str | float) -> BudgetView:
    """Create or change the budget of a job (named by its id), a recipe or a caller.

    A job's budget also covers the jobs that its steps start, and the job's earlier costs count. The budget of a recipe
    or a caller counts costs from now on.
    """
    limit = _amount(most)
    job_id = _check(scope, name)

    async def operation(connection: asyncpg.Connection) -> BudgetView:
        async with connection.transaction():
            # No granter may reserve money while this transaction sums the reservations.
            await connection.execute(sql("grant_wait"))
            jobs = [] if job_id is None else await _locked_family(connection, job_id)
            spent = reserved = Decimal(0)
            if await connection.fetchrow(sql("budget_get"), scope, name) is None:
                held = await connection.fetch(sql("budget_held"), scope, name)
                reserved = sum((row["cost"] for row in held), Decimal(0))
                if jobs:
                    spent = await connection.fetchval(sql("budget_spent"), jobs)
            row = await connection.fetchrow(sql("budget_set"), scope, name, limit, spent, reserved)
            await note_changes(connection, [(scope, name)])
        return _view(row)

    return await db.run(operation)


async def get(db: Database, scope: str, name: str) -> BudgetView | None:
    """Return the budget, or None."""
    _check(scope, name)
    async with db.connection() as connection:
        row = await connection.fetchrow(sql("budget_get"), scope, name)
    return None if row is None else _view(row)


async def list(db: Database, scope: str | None = None, *, limit: int = LIST_MAX) -> Sequence[BudgetView]:
    """List the budgets, of one scope if given."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("budget_list"), scope, min(limit, LIST_MAX))
    return [_view(row) for row in rows]


async def remove(db: Database, scope: str, name: str) -> bool:
    """Remove the budget, which lifts the limit. Returns False if there was none."""
    _check(scope, name)

    async def operation(connection: asyncpg.Connection) -> bool:
        async with connection.transaction():
            await connection.execute(sql("grant_wait"))
            is_gone = await connection.fetchval(sql("budget_remove"), scope, name) is not None
            await note_changes(connection, [(scope, name)])
        return is_gone

    return await db.run(operation)


async def _locked_family(connection: asyncpg.Connection, job_id: UUID) -> builtins.list[UUID]:
    """Lock the job and its descendants and return their ids. No descendant can be added while they are locked."""
    jobs: builtins.set[UUID] = builtins.set()
    while True:
        found = {row["id"] for row in await connection.fetch(sql("budget_jobs"), job_id)}
        if not found:
            raise NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
        if found == jobs:
            return sorted(found)
        jobs = found
        await drafts.lock(connection, jobs)


def _view(row: Any) -> BudgetView:
    return BudgetView(*(row[field.name] for field in fields(BudgetView)))


def _check(scope: str, name: str) -> UUID | None:
    """Refuse an invalid scope or name. Returns the job's id for the scope `job`."""
    if scope not in SCOPES:
        raise BadInput(f"{scope} has no budgets", remedy=f"A budget is a {', a '.join(SCOPES)}'s")
    if not 0 < len(name) <= NAME_MAX or "\0" in name:
        raise BadInput(f"a budget's name has 1 to {NAME_MAX} characters")
    if scope != "job":
        return None
    try:
        job_id = UUID(name)
    except ValueError:
        raise BadInput(f"{name} is not a job's id") from None
    if str(job_id) != name:
        raise BadInput(f"{name} is not how a job's id is written", remedy=f"Write {job_id}")
    return job_id


def _amount(most: Decimal | str | float) -> Decimal:
    try:
        amount = Decimal(str(most))
    except ArithmeticError:
        raise BadInput(f"{most} is not an amount of money") from None
    if not amount.is_finite() or not 0 <= amount <= MOST_MAX:
        raise BadInput(f"a budget is at least 0 and at most {MOST_MAX}")
    return amount
