"""Recipes as people see them: names, versions, and the inputs of recent jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.store.database import Database
from windlass.store.statements import sql

# Recent inputs: the most returned, the most jobs read, the most of the recipe's jobs compared, and the largest size.
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
class JobInputs:
    """The inputs of a job."""

    job_id: UUID
    at: datetime
    inputs: Any


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


async def recent_inputs(db: Database, name: str, caller: str | None) -> list[JobInputs]:
    """Return recent inputs of a recipe's jobs, newest first and each once, of one caller or of all."""
    statement = sql("recent_inputs" if caller is None else "recent_inputs_caller")
    more = () if caller is None else (caller,)
    limits = (_GIVEN_LOOKED_MAX, _GIVEN_MAX_BYTES, _GIVEN_COMPARED_MAX, GIVEN_MAX)
    async with db.connection() as connection:
        rows = await connection.fetch(statement, name, *limits, *more)
    return [JobInputs(row["id"], row["created_at"], msgspec.json.decode(row["input"])) for row in rows]
