"""Plans and recipes as the database knows them; plans never change, so they are kept once read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.errors import Broken, NotFound
from windlass.core.plan import Plan, plan_from_json
from windlass.store.database import Database
from windlass.store.statements import sql

_KEPT_MAX = 2_000
# A recipe asked for by name is looked up again after this long: a new version applies to new jobs within a second.
NAME_KEPT_S = 1.0
# Recent inputs: how many are told; of how many jobs, of how many of the recipe's own, and how large they may be.
GIVEN_MAX = 10
_GIVEN_LOOKED_MAX = 5_000
_GIVEN_COMPARED_MAX = 500
_GIVEN_MAX_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class RecipeVersion:
    """One version of a recipe."""

    name: str
    version: int
    plan_hash: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Given:
    """What a job was given."""

    job_id: UUID
    at: datetime
    inputs: Any


class Plans:
    """The plans that this process has met, by hash."""

    def __init__(self) -> None:
        self._kept: dict[str, Plan] = {}

    def keep(self, plan: Plan) -> None:
        """Remember a plan; the oldest goes when there are too many."""
        if plan.hash not in self._kept:
            while len(self._kept) >= _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[plan.hash] = plan

    def get(self, plan_hash: str) -> Plan | None:
        """The plan, if it was met before."""
        return self._kept.get(plan_hash)


# One cache per process, whatever the database: a plan's hash is its content.
PLANS = Plans()


async def plan_of(db: Database, plan_hash: str) -> Plan:
    """The plan of this hash."""
    plan = PLANS.get(plan_hash)
    if plan is None:
        async with db.connection() as connection:
            plan = await read_plan(connection, plan_hash)
    return plan


async def read_plan(connection: asyncpg.Connection, plan_hash: str) -> Plan:
    """The plan of this hash, on a connection that is already in use."""
    plan = PLANS.get(plan_hash)
    if plan is None:
        body = await connection.fetchval(sql("plan_get"), plan_hash)
        if body is None:
            raise Broken(f"plan {plan_hash} is named by a job but is not stored")
        plan = plan_from_json(body)
        PLANS.keep(plan)
    return plan


async def register(db: Database, plan: Plan) -> int:
    """Make this plan the recipe's newest version, unless it already is; returns the version."""

    async def operation(connection: asyncpg.Connection) -> int:
        while True:
            async with connection.transaction():
                await connection.execute(sql("plan_put"), plan.hash, plan.canonical.decode())
                await connection.execute(sql("recipe_put"), plan.recipe, plan.hash)
                row = await connection.fetchrow(sql("recipe_latest"), plan.recipe)
            # Another process may have put another version in between; the last to register wins.
            if row is not None and row["plan"] == plan.hash:
                return int(row["version"])

    version = await db.run(operation)
    PLANS.keep(plan)
    return version


async def store_plan(db: Database, plan: Plan) -> None:
    """Store the plan without making it a version of a recipe."""
    await db.run(lambda connection: connection.execute(sql("plan_put"), plan.hash, plan.canonical.decode()))
    PLANS.keep(plan)


async def latest(db: Database, name: str, version: int | None = None) -> Plan:
    """The newest version of a recipe, or the one asked for."""
    async with db.connection() as connection:
        if version is None:
            row = await connection.fetchrow(sql("recipe_latest"), name)
        elif not 0 < version < 2**31:
            row = None
        else:
            row = await connection.fetchrow(sql("recipe_version"), name, version)
        if row is None:
            what = f"recipe {name}" if version is None else f"version {version} of recipe {name}"
            raise NotFound(f"there is no {what}", remedy="`windlass recipes` lists the known ones")
        return await read_plan(connection, row["plan"])


class NamedPlans:
    """Plans by the names of their recipes, looked up again when a second has passed. `clock` gives seconds."""

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock
        self._kept: dict[tuple[str, int | None], tuple[float, Plan]] = {}

    async def latest(self, name: str, version: int | None = None) -> Plan:
        """The newest version of a recipe as of a second ago, or the one asked for."""
        now_s = self._clock()
        kept = self._kept.get((name, version))
        if kept is not None and now_s - kept[0] <= NAME_KEPT_S:
            return kept[1]
        plan = await latest(self._db, name, version)
        while len(self._kept) >= _KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[name, version] = (now_s, plan)
        return plan


async def listing(db: Database) -> list[RecipeVersion]:
    """Every recipe with its newest version."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("recipe_list"))
    return [RecipeVersion(row["name"], row["version"], row["plan"], row["created_at"]) for row in rows]


async def versions(db: Database, name: str) -> list[RecipeVersion]:
    """Every version of one recipe, the newest first."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("recipe_versions"), name)
    return [RecipeVersion(name, row["version"], row["plan"], row["created_at"]) for row in rows]


async def recent_inputs(db: Database, name: str, caller: str | None) -> list[Given]:
    """What jobs of a recipe were given lately, the newest first and each once: one caller's, or everybody's."""
    statement = sql("recent_inputs" if caller is None else "recent_inputs_caller")
    more = () if caller is None else (caller,)
    limits = (_GIVEN_LOOKED_MAX, _GIVEN_MAX_BYTES, _GIVEN_COMPARED_MAX, GIVEN_MAX)
    async with db.connection() as connection:
        rows = await connection.fetch(statement, name, *limits, *more)
    return [Given(row["id"], row["created_at"], msgspec.json.decode(row["input"])) for row in rows]
