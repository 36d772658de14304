"""Dead letters by kind of failure.

A FAILED, TIMEOUT or DENIED job is a dead letter until it is run again, discarded or deleted (`engine/redrive.py`).
One read covers the newest `LOOKED_MAX` of them; older jobs appear once newer ones are redriven or discarded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.control import Targets
from windlass.core.errors import CountChanged, NotFound
from windlass.core.visibility import Reader
from windlass.pure.fingerprint import MESSAGE_CHARS_MAX, fingerprint
from windlass.store.database import Database
from windlass.store.outputs import fetch
from windlass.store.statements import sql

LOOKED_MAX = 5_000
IDS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Failures of one kind, newest first; `message` is that of the newest."""

    fingerprint: str
    code: str
    message: str
    recipe: str
    step: str | None
    first_at: datetime
    last_at: datetime
    versions: tuple[int, ...]
    job_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """All kinds, the latest first, with the number of failed jobs read and whether there may be more."""

    kinds: list[DeadLetters]
    looked_at: int
    is_capped: bool


class Count(NamedTuple):
    """The number of dead letters among the failed jobs read, and the newest dead letter."""

    looked_at: int
    dead: int
    newest: UUID | None

    @property
    def is_capped(self) -> bool:
        """Whether there may be older dead letters."""
        return self.looked_at >= LOOKED_MAX


async def count(connection: asyncpg.Connection, caller: str | None) -> Count:
    """Count the dead letters of one caller, or of all. Costs a tenth of reading them."""
    if caller is None:
        return Count(*await connection.fetchrow(sql("dead_letters_count"), LOOKED_MAX))
    return Count(*await connection.fetchrow(sql("dead_letters_count_caller"), LOOKED_MAX, caller))


async def look(db: Database, caller: str | None) -> Look:
    """Read the dead letters of one caller, or of all."""
    async with db.connection() as connection:
        if caller is None:
            rows = await fetch(connection, "dead_letters", Reader.CALLER, LOOKED_MAX, MESSAGE_CHARS_MAX)
        else:
            values = (LOOKED_MAX, MESSAGE_CHARS_MAX, caller)
            rows = await fetch(connection, "dead_letters_caller", Reader.CALLER, *values)
        counted = await count(connection, caller)
        pairs = sorted({(row["recipe"], row["plan"]) for row in rows})
        known = await connection.fetch(sql("plan_versions"), [one for one, _ in pairs], [plan for _, plan in pairs])
    version = {(row["name"], row["plan"]): row["version"] for row in known}
    kinds: dict[str, list[Any]] = {}
    # Thousands of jobs often fail with the same message.
    named: dict[tuple[str, str, str, str], str] = {}
    for row in rows:
        told = (row["code"] or "", row["recipe"], row["step"] or "", row["message"] or "")
        if told not in named:
            named[told] = fingerprint(*told)
        kinds.setdefault(named[told], []).append(row)
    found = [_letters(kind, of_kind, version) for kind, of_kind in kinds.items()]
    found.sort(key=lambda one: (one.last_at, one.fingerprint), reverse=True)
    return Look(found, counted.looked_at, counted.is_capped)


def _letters(named: str, rows: list[Any], version: dict[tuple[str, str], int]) -> DeadLetters:
    newest = rows[0]
    times = [row["finished_at"] for row in rows]
    numbers = {version.get((row["recipe"], row["plan"])) for row in rows} - {None}
    return DeadLetters(
        fingerprint=named,
        code=newest["code"] or "",
        message=newest["message"] or "",
        recipe=newest["recipe"],
        step=newest["step"] or None,
        first_at=min(times),
        last_at=max(times),
        versions=tuple(sorted(number for number in numbers if number is not None)),
        job_ids=tuple(row["id"] for row in rows),
    )


async def of_kind(db: Database, caller: str | None, named: str, expect: int | None) -> Targets:
    """Return the jobs of the kind with this fingerprint. Raises CountChanged if their number differs from `expect`."""
    seen = await look(db, caller)
    ids = next((kind.job_ids for kind in seen.kinds if kind.fingerprint == named), ())
    if not ids:
        raise NotFound("there are no dead letters of this kind", remedy="They may be redriven or discarded: list again")
    if expect is not None and expect != len(ids):
        raise CountChanged(f"{len(ids)} jobs are of this kind, not {expect}", remedy="Look at the list again")
    return Targets(ids, seen.is_capped)
