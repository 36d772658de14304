"""Registers plans as versions of recipes, and finds the version that a new job runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import asyncpg

from windlass.core.errors import NotFound, WrongState
from windlass.core.plan import Plan
from windlass.store.database import Database
from windlass.store.plans import PLANS, read_plan
from windlass.store.statements import sql

_KEPT_MAX = 2_000
# A recipe's newest version is cached for this long: a new version applies to new jobs within a second.
NAME_KEPT_S = 1.0


@dataclass(frozen=True, slots=True)
class Registered:
    """The version of a registered plan, and the newest version of its recipe."""

    version: int
    newest: int


@dataclass(frozen=True, slots=True)
class Described:
    """A version of a recipe: its plan, and its description for people. `version` is the newest that is this plan."""

    plan: Plan
    description: str
    version: int | None = None


async def register(db: Database, plan: Plan, *, description: str = "", is_newest: bool = False) -> Registered:
    """Make this plan a version of its recipe. A new plan becomes the newest version; a known plan keeps its version.

    With `is_newest` a known plan becomes the newest version too, under a new number: a roll-back. A `description`
    replaces the plan's description; an empty one changes nothing.
    """
    put = "recipe_put_newest" if is_newest else "recipe_put"

    async def operation(connection: asyncpg.Connection) -> Registered:
        while True:
            async with connection.transaction():
                await connection.execute(sql("plan_put"), plan.hash, plan.canonical.decode())
                await connection.execute(sql(put), plan.recipe, plan.hash)
                await connection.execute(sql("recipe_describe"), plan.recipe, plan.hash, description)
                row = await connection.fetchrow(sql("recipe_of_plan"), plan.recipe, plan.hash)
            # Another process may have taken the number in the meantime.
            if row["version"] is not None and (row["version"] == row["newest"] or not is_newest):
                return Registered(row["version"], row["newest"])

    found = await db.run(operation)
    PLANS.keep(plan)
    return found


async def rollback(db: Database, name: str, version: int | None = None) -> tuple[int, Registered]:
    """Make an earlier version the newest, under a new number. The default is the version before the newest."""
    if version is None:
        async with db.connection() as connection:
            numbers = [row["version"] for row in await connection.fetch(sql("recipe_versions"), name)]
        if len(numbers) == 1:
            raise WrongState(f"recipe {name} has only one version", remedy="Register another one first")
        version = numbers[1] if numbers else None
    plan = await latest(db, name, version)
    return version or 0, await register(db, plan, is_newest=True)


async def latest(db: Database, name: str, version: int | None = None) -> Plan:
    """Return the plan of a recipe's newest version, or of the given version."""
    return (await described(db, name, version)).plan


async def described(db: Database, name: str, version: int | None = None) -> Described:
    """Return the newest or the given version of a recipe, with its description."""
    async with db.connection() as connection:
        if version is None:
            row = await connection.fetchrow(sql("recipe_latest"), name)
        elif not 0 < version < 2**31:
            row = None
        else:
            row = await connection.fetchrow(sql("recipe_version"), name, version)
        if row is None:
            known = [one["name"] for one in await connection.fetch(sql("recipe_list"))]
            raise _unknown(name, version, known)
        return Described(await read_plan(connection, row["plan"]), row["description"], row["version"])


def _unknown(name: str, version: int | None, known: Sequence[str]) -> NotFound:
    what = f"recipe {name}" if version is None else f"version {version} of recipe {name}"
    close = get_close_matches(name, known, n=1)
    remedy = (
        f"Did you mean {close[0]}?" if close and close[0] != name else "`windlass recipes list` shows the known ones"
    )
    return NotFound(f"there is no {what}", remedy=remedy)


class NamedPlans:
    """Caches plans by recipe name, each for NAME_KEPT_S seconds. `clock` returns seconds."""

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock
        self._kept: dict[tuple[str, int | None], tuple[float, Described]] = {}

    async def latest(self, name: str, version: int | None = None) -> Plan:
        """Return the recipe's newest plan as of at most a second ago, or the plan of the given version."""
        return (await self.described(name, version)).plan

    async def described(self, name: str, version: int | None = None) -> Described:
        """Return `latest` with its version and its description."""
        now_s = self._clock()
        kept = self._kept.get((name, version))
        if kept is not None and now_s - kept[0] <= NAME_KEPT_S:
            return kept[1]
        found = await described(self._db, name, version)
        while len(self._kept) >= _KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[name, version] = (now_s, found)
        return found
