"""Plans and recipes as the database knows them; plans never change, so they are kept once read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.errors import Broken, NotFound, WrongState
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
    description: str = ""


@dataclass(frozen=True, slots=True)
class Registered:
    """The version that a registered plan is, and the newest version of its recipe."""

    version: int
    newest: int


@dataclass(frozen=True, slots=True)
class Described:
    """A version of a recipe: its plan, and its description for people."""

    plan: Plan
    description: str


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


async def register(db: Database, plan: Plan, *, description: str = "", is_newest: bool = False) -> Registered:
    """Make this plan a version of its recipe. A new plan becomes the newest version; a known one keeps its version.

    With `is_newest` a known plan becomes the newest version too, under a new number: a roll-back. A `description`
    replaces the one that the plan had; an empty one leaves it as it is.
    """
    put = "recipe_put_newest" if is_newest else "recipe_put"

    async def operation(connection: asyncpg.Connection) -> Registered:
        while True:
            async with connection.transaction():
                await connection.execute(sql("plan_put"), plan.hash, plan.canonical.decode())
                await connection.execute(sql(put), plan.recipe, plan.hash)
                await connection.execute(sql("recipe_describe"), plan.recipe, plan.hash, description)
                row = await connection.fetchrow(sql("recipe_of_plan"), plan.recipe, plan.hash)
            # Another process may have taken the number in between.
            if row["version"] is not None and (row["version"] == row["newest"] or not is_newest):
                return Registered(row["version"], row["newest"])

    found = await db.run(operation)
    PLANS.keep(plan)
    return found


async def rollback(db: Database, name: str, version: int | None = None) -> tuple[int, Registered]:
    """Make an earlier version the newest, under a new number: the one given, else the one before the newest."""
    if version is None:
        numbers = [one.version for one in await versions(db, name)]
        if len(numbers) == 1:
            raise WrongState(f"recipe {name} has one version only", remedy="Register another one first")
        version = numbers[1] if numbers else None
    plan = await latest(db, name, version)
    return version or 0, await register(db, plan, is_newest=True)


async def store_plan(db: Database, plan: Plan) -> None:
    """Store the plan without making it a version of a recipe."""
    await db.run(lambda connection: connection.execute(sql("plan_put"), plan.hash, plan.canonical.decode()))
    PLANS.keep(plan)


async def latest(db: Database, name: str, version: int | None = None) -> Plan:
    """The newest version of a recipe, or the one asked for."""
    return (await described(db, name, version)).plan


async def described(db: Database, name: str, version: int | None = None) -> Described:
    """The newest version of a recipe, or the one asked for, with its description."""
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
        return Described(await read_plan(connection, row["plan"]), row["description"])


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
    return [_version(row["name"], row) for row in rows]


async def versions(db: Database, name: str) -> list[RecipeVersion]:
    """Every version of one recipe, the newest first."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("recipe_versions"), name)
    return [_version(name, row) for row in rows]


def _version(name: str, row: asyncpg.Record) -> RecipeVersion:
    return RecipeVersion(name, row["version"], row["plan"], row["created_at"], row["description"])


async def recent_inputs(db: Database, name: str, caller: str | None) -> list[Given]:
    """What jobs of a recipe were given lately, the newest first and each once: one caller's, or everybody's."""
    statement = sql("recent_inputs" if caller is None else "recent_inputs_caller")
    more = () if caller is None else (caller,)
    limits = (_GIVEN_LOOKED_MAX, _GIVEN_MAX_BYTES, _GIVEN_COMPARED_MAX, GIVEN_MAX)
    async with db.connection() as connection:
        rows = await connection.fetch(statement, name, *limits, *more)
    return [Given(row["id"], row["created_at"], msgspec.json.decode(row["input"])) for row in rows]
