"""Failed jobs that nobody has dealt with, by kind of failure; and dealing with a kind at once.

A failed job is a dead letter until it was run again, discarded or deleted. The newest `LOOKED_MAX` failed jobs are
looked at; what lies behind them comes up as those are dealt with. Dealing with a kind goes job by job, each in a commit
that also writes down that it is dealt with: so two who press at once run no job twice, and a request that was cut off
may be sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.caller import PRIORITY_MAX
from windlass.core.errors import CountChanged, NotFound, Refused, WrongState
from windlass.core.fingerprint import MESSAGE_CHARS_MAX, fingerprint
from windlass.engine.bulk import BULK_MAX, Bulk
from windlass.engine.rerun import Wish, make
from windlass.engine.submit import check_text
from windlass.store.database import Database
from windlass.store.statements import sql

LOOKED_MAX = 5_000
IDS_SHOWN_MAX = 20
Start = Literal["failed", "first"]


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Failures of one kind, the newest first; `message` is the newest one's."""

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
    """Every kind, the one that happened last first; how many failed jobs were looked at, and whether those were all."""

    kinds: list[DeadLetters]
    looked_at: int
    is_capped: bool


class Count(NamedTuple):
    """How many there are, among how many failed jobs that were looked at; and the newest."""

    looked_at: int
    dead: int
    newest: UUID | None

    @property
    def is_capped(self) -> bool:
        """Whether there may be older ones."""
        return self.looked_at >= LOOKED_MAX


async def count(connection: asyncpg.Connection, caller: str | None) -> Count:
    """How many dead letters one caller has, or all have; a tenth of the work of looking at them."""
    if caller is None:
        return Count(*await connection.fetchrow(sql("dead_letters_count"), LOOKED_MAX))
    return Count(*await connection.fetchrow(sql("dead_letters_count_caller"), LOOKED_MAX, caller))


async def look(db: Database, caller: str | None) -> Look:
    """The dead letters of one caller, or of all."""
    async with db.connection() as connection:
        if caller is None:
            rows = await connection.fetch(sql("dead_letters"), LOOKED_MAX, MESSAGE_CHARS_MAX)
        else:
            rows = await connection.fetch(sql("dead_letters_caller"), LOOKED_MAX, MESSAGE_CHARS_MAX, caller)
        counted = await count(connection, caller)
        pairs = sorted({(row["recipe"], row["plan"]) for row in rows})
        known = await connection.fetch(sql("plan_versions"), [one for one, _ in pairs], [plan for _, plan in pairs])
    version = {(row["name"], row["plan"]): row["version"] for row in known}
    kinds: dict[str, list[Any]] = {}
    # Often thousands say the very same.
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


async def redrive(
    db: Database,
    caller: str | None,
    named: str,
    start: Start,
    *,
    new_id: Callable[[], UUID],
    limit: int,
    dry_run: bool,
    expect: int | None,
    source: str,
    request_id: str | None,
    priority_max: int = PRIORITY_MAX,
) -> Bulk:
    """Run the newest `limit` jobs of this kind again: from where they failed, or from their first step."""
    ids, is_more = await _targets(db, caller, named, expect=None if dry_run else expect)
    if dry_run:
        return Bulk(len(ids), is_more)
    done: list[tuple[UUID, UUID | None]] = []
    refused: list[tuple[UUID, str]] = []
    wish = Wish("retry" if start == "failed" else "rerun")
    for job_id in ids[: min(limit, BULK_MAX)]:
        try:
            made = await make(
                *(db, job_id, wish, new_id()),
                source=source,
                request_id=request_id,
                once=True,
                priority_max=priority_max,
            )
            done.append((job_id, made))
        except Refused as error:
            refused.append((job_id, error.code))
    return Bulk(len(ids), is_more, tuple(done), tuple(refused))


async def discard(
    db: Database, caller: str | None, named: str, *, dry_run: bool, expect: int | None, reason: str, source: str
) -> Bulk:
    """Leave the jobs of this kind as they are: they stay failed and are no longer dead letters."""
    check_text(reason)
    check_text(source)
    ids, is_more = await _targets(db, caller, named, expect=None if dry_run else expect)
    if dry_run:
        return Bulk(len(ids), is_more)

    async def operation(connection: asyncpg.Connection) -> set[UUID]:
        async with connection.transaction():
            await connection.execute(sql("dead_letter_discard"), ids, source, reason)
            # Also what an earlier commit did whose answer was lost.
            return {row["job_id"] for row in await connection.fetch(sql("dead_letter_discarded"), ids)}

    gone = await db.run(operation)
    return Bulk(
        len(ids),
        is_more,
        tuple((job_id, None) for job_id in ids if job_id in gone),
        tuple((job_id, WrongState.code) for job_id in ids if job_id not in gone),
    )


async def _targets(
    db: Database, caller: str | None, named: str, *, expect: int | None
) -> tuple[tuple[UUID, ...], bool]:
    seen = await look(db, caller)
    ids = next((kind.job_ids for kind in seen.kinds if kind.fingerprint == named), ())
    if not ids:
        raise NotFound("there are no dead letters of this kind", remedy="They may have been dealt with: look again")
    if expect is not None and expect != len(ids):
        raise CountChanged(f"{len(ids)} jobs are of this kind, not {expect}", remedy="Look at the list again")
    return ids, seen.is_capped
