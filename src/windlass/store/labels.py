"""Indexed labels: a list by an indexed label is driven by that label's index.

The index is the whole declaration. Its name contains the label's name, and the catalogue says whether it is valid. So
no process needs to be informed: a list queries the catalogue only if it is filtered by labels. Jobs without the label
have no entry in the index. Indexes are built with CONCURRENTLY, so jobs can be submitted and finished meanwhile.
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
    """Return which of these labels have a valid index of this kind (`OF_A_CALLER`, `OF_ALL`)."""
    likely = [name for name in names if can_be_indexed(name)]
    return [row["name"] for row in await connection.fetch(sql("label_indexed"), likely, prefix)] if likely else []


def statement(name: str, label: str) -> str:
    """Return the named statement for one label. The planner uses an expression index only for a constant."""
    return sql(name).replace(":'label'", f"'{check_indexed(label)}'")


async def listed(db: Database) -> dict[str, bool]:
    """Return every label that has an index, and whether it is complete."""
    async with db.connection() as connection:
        return {row["name"]: row["is_ready"] for row in await connection.fetch(sql("label_all"))}


async def declare(db: Database, names: Iterable[str]) -> list[str]:
    """Build the indexes of these labels; return the labels that got an index. This reads all jobs and may take long."""
    wanted = sorted(set(names))
    _check_count(wanted)
    ready = await listed(db)
    made: list[str] = []
    for name in wanted:
        if not ready.get(check_indexed(name), False) and await _each(db, "label_work", name):
            made.append(name)
    return made


async def drop(db: Database, name: str) -> bool:
    """Drop a label's indexes; return False if it has none."""
    if name not in await listed(db):
        return False
    await _each(db, "label_drop", check_indexed(name))
    return True


async def _each(db: Database, what: str, label: str) -> int:
    """Execute the statements that `what` returns for this label, one process at a time; return their number."""

    async def operation(connection: asyncpg.Connection) -> int:
        while not await connection.fetchval(sql("label_lock"), _LOCK_KEY):  # noqa: ASYNC110 - another process holds it
            await asyncio.sleep(_LOCK_EVERY_S)
        try:
            # A build waits for open transactions.
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
            f"{len(names)} labels are declared indexed; the limit is {INDEXED_MAX}",
            remedy="Declare only the labels that lists are filtered by; a filter works for any label",
        )
