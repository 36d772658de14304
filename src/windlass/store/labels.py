"""Indexed labels: lists by a label that is declared indexed are driven by an index of its own.

A declaration is an index and nothing else. Its name carries the label's, the catalogue says whether it is valid, and no
process has to be told: a list asks the catalogue when it is filtered by labels, and only then. Jobs without the label
have no entry in the index. Indexes are made with CONCURRENTLY, so jobs are submitted and finished meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import asyncpg

from windlass.core.errors import BadSetting
from windlass.pure.label import can_be_indexed, check_indexed
from windlass.store.database import Database
from windlass.store.statements import sql

INDEXED_MAX = 16
BUILD_MAX_S = 24 * 3600.0
OF_A_CALLER = "jobs_label_"
OF_ALL = "jobs_all_label_"
_LOCK_KEY = 0x6C6162656C  # "label" as a number
_LOCK_EVERY_S = 0.2


async def indexed(connection: asyncpg.Connection, names: Iterable[str], prefix: str) -> list[str]:
    """Which of these labels have a valid index of this kind (`OF_A_CALLER`, `OF_ALL`)."""
    likely = [name for name in names if can_be_indexed(name)]
    return [row["name"] for row in await connection.fetch(sql("label_indexed"), likely, prefix)] if likely else []


def statement(name: str, label: str) -> str:
    """The statement of this name for one label. The planner finds an expression index only by a constant."""
    return sql(name).replace(":'label'", f"'{check_indexed(label)}'")


async def listed(db: Database) -> dict[str, bool]:
    """Every label that has an index, and whether it is complete."""
    async with db.connection() as connection:
        return {row["name"]: row["is_ready"] for row in await connection.fetch(sql("label_all"))}


async def declare(db: Database, names: Iterable[str]) -> list[str]:
    """Give these labels their indexes; returns those that got one. Takes as long as reading the jobs takes."""
    wanted = sorted(set(names))
    _check_count(wanted)
    ready = await listed(db)
    made: list[str] = []
    for name in wanted:
        if not ready.get(check_indexed(name), False) and await _each(db, "label_work", name):
            made.append(name)
    return made


async def drop(db: Database, name: str) -> bool:
    """Take a label's indexes away; False if it has none."""
    if name not in await listed(db):
        return False
    await _each(db, "label_drop", check_indexed(name))
    return True


async def _each(db: Database, what: str, label: str) -> int:
    """Do what the statement says for this label, one process at a time; how many statements that were."""

    async def operation(connection: asyncpg.Connection) -> int:
        while not await connection.fetchval(sql("label_lock"), _LOCK_KEY):  # noqa: ASYNC110 - another process holds it
            await asyncio.sleep(_LOCK_EVERY_S)
        try:
            # A build waits for the transactions that are under way.
            await connection.execute("SET lock_timeout = 0")
            work = [row[0] for row in await connection.fetch(sql(what), label)]
            for text in work:
                await connection.execute(text, timeout=BUILD_MAX_S)
            if work:
                await connection.execute(sql("label_analyze"), timeout=BUILD_MAX_S)
            return len(work)
        finally:
            if not connection.is_closed():
                await connection.execute("RESET lock_timeout")
                await connection.fetchval(sql("label_unlock"), _LOCK_KEY)

    return await db.run(operation)


def _check_count(names: list[str]) -> None:
    if len(names) > INDEXED_MAX:
        raise BadSetting(
            f"{len(names)} labels are declared indexed, and {INDEXED_MAX} can be",
            remedy="Declare those that lists are filtered by; any label can be a filter",
        )
