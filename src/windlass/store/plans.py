"""The stored plans, by content hash. A plan never changes, so a process caches every plan that it has read."""

from __future__ import annotations

import asyncpg

from windlass.core.errors import Broken
from windlass.core.plan import Plan, plan_from_json
from windlass.store.database import Database
from windlass.store.statements import sql

_KEPT_MAX = 2_000


class Plans:
    """The plans that this process has used, by hash."""

    def __init__(self) -> None:
        self._kept: dict[str, Plan] = {}

    def keep(self, plan: Plan) -> None:
        """Cache a plan; evict the oldest if there are too many."""
        if plan.hash not in self._kept:
            while len(self._kept) >= _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[plan.hash] = plan

    def get(self, plan_hash: str) -> Plan | None:
        """Return the plan if it is cached."""
        return self._kept.get(plan_hash)


# One cache per process, for all databases: a plan's hash identifies its content.
PLANS = Plans()


async def plan_of(db: Database, plan_hash: str) -> Plan:
    """Return the plan with this hash."""
    plan = PLANS.get(plan_hash)
    if plan is None:
        async with db.connection() as connection:
            plan = await read_plan(connection, plan_hash)
    return plan


async def read_plan(connection: asyncpg.Connection, plan_hash: str) -> Plan:
    """Return the plan with this hash, on a connection that is already in use."""
    plan = PLANS.get(plan_hash)
    if plan is None:
        body = await connection.fetchval(sql("plan_get"), plan_hash)
        if body is None:
            raise Broken(f"plan {plan_hash} is named by a job but is not stored")
        plan = plan_from_json(body)
        PLANS.keep(plan)
    return plan


async def store_plan(db: Database, plan: Plan) -> None:
    """Store the plan without making it a version of a recipe."""
    await db.run(lambda connection: connection.execute(sql("plan_put"), plan.hash, plan.canonical.decode()))
    PLANS.keep(plan)
