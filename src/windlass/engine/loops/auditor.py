"""The auditor builds the audit chain: actions of callers and ends of jobs become records.

Only the auditor appends to the chain, and no other process waits for it. One commit takes the notes, moves the
auditor's position in the feed, appends the records and counts jobs by recipe and state:

    audit_notes ──(taken)──┐
                           ├─► records, each hashed with the one before ─► audit      one commit
    feed ──(own cursor)────┘                                            └─► tallies, minutes

Any number of processes may run it. An auditor that does not get the lock does nothing, and an auditor that is killed
leaves nothing half done. After a restore lost its position, it reads events again, finds them in the chain and skips
them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.caller import LOCAL, UNKNOWN_TYPE
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.core.visibility import Reader
from windlass.engine import feed
from windlass.engine.feed import FeedRow
from windlass.engine.loops.duty import Done
from windlass.pure.audit import GENESIS, AuditEvent, Record, chain_hash, payload_text
from windlass.pure.cursor import arrange
from windlass.pure.length import class_of
from windlass.pure.observer import Observer
from windlass.store.database import Database
from windlass.store.outputs import fetch
from windlass.store.statements import bound, sql

BATCH_MAX = 500
# The feed events that become records. The job's own history has the other events.
_ENDINGS = {f"job.{state.lower()}": state for state in JOB_TERMINAL}
_EVENTS = {
    **dict.fromkeys(sorted(_ENDINGS), AuditEvent.JOB_FAILED),
    "job.submitted": AuditEvent.JOB_SUBMITTED,
    "job.completed": AuditEvent.JOB_COMPLETED,
    "job.cancelled": AuditEvent.JOB_CANCELLED,
}

log = logging.getLogger("windlass.audit")


class Auditor:
    """Appends records to the audit chain, and reports ended jobs to the observer."""

    name = "auditor"

    def __init__(self, db: Database, *, with_jobs: bool = True, observer: Observer | None = None) -> None:
        self._db = db
        self._with_jobs = with_jobs
        self._observer = observer

    async def run_once(self) -> Done:
        """Append one batch of records."""
        done, news = await self._db.run(self._append)
        if self._observer is not None and (ended := [row for row in news if row.type in _ENDINGS]):
            ids = [row.at.job_id for row in ended]
            rows = await self._db.run(lambda connection: connection.fetch(sql("job_parents"), ids))
            parents: dict[UUID, UUID] = {row["id"]: row["parent_job"] for row in rows}
            for row in ended:
                job_id, state = row.at.job_id, _ENDINGS[row.type]
                self._observer.ended(
                    job_id, row.recipe, state, row.created_at, row.when, row.correlation_id, parents.get(job_id)
                )
        return done

    async def _append(self, connection: asyncpg.Connection) -> tuple[Done, list[FeedRow]]:
        async with connection.transaction():
            if not await connection.fetchval(sql("audit_lock")):
                return Done(0), []
            notes = await connection.fetch(sql("audit_take_notes"), BATCH_MAX)
            news, is_more = await self._news(connection)
            tail = await connection.fetchrow(sql("audit_tail"))
            no, before = (0, GENESIS) if tail is None else (tail["no"], tail["hash"])
            made = [_of_note(no + 1 + place, row) for place, row in enumerate(sorted(notes, key=lambda row: row["id"]))]
            errors = await _errors(connection, news)
            made += [_of_job(no + 1 + len(made) + place, row, errors) for place, row in enumerate(news)]
            if made:
                made = await _with_callers(connection, made)
                head = await _write(connection, made, before)
                log.info("the audit's record %d has the hash %s", made[-1].no, head.hex())
            await _tally(connection, news)
        return Done(len(made), is_more or len(notes) >= BATCH_MAX), news

    async def _news(self, connection: asyncpg.Connection) -> tuple[list[FeedRow], bool]:
        """Read the feed events to record, in each job's order, and whether more follow."""
        if not self._with_jobs:
            return [], False
        start = await feed.cursor(connection, self.name)
        look = await feed.read(connection, start, limit=BATCH_MAX)
        if look.end > start:
            await feed.keep_cursor(connection, self.name, look.end)
        rows = [row for row, _ in arrange(look.rows, lambda row: row.at, start) if row.type in _EVENTS]
        known = await connection.fetch(sql("audit_known"), sorted({row.at.job_id for row in rows})) if rows else []
        seen = {(row["job_id"], row["event"]) for row in known}
        fresh = [row for row in rows if (row.at.job_id, str(_EVENTS[row.type])) not in seen]
        return fresh, look.is_more


def _of_note(no: int, row: asyncpg.Record) -> Record:
    payload = msgspec.json.decode(row["payload"])
    if not isinstance(payload, dict):
        payload = {"value": payload}
    own = {name: payload.pop(name) for name in ("caller_type", "tier", "request_id") if _is_text(payload.get(name))}
    job_id = _uuid(payload.get("job_id"))
    if job_id is not None:
        del payload["job_id"]
    return Record(
        no,
        row["at"],
        row["event"],
        row["caller"],
        own.get("caller_type"),
        own.get("tier"),
        job_id,
        own.get("request_id"),
        payload_text(payload),
    )


async def _with_callers(connection: asyncpg.Connection, made: Sequence[Record]) -> list[Record]:
    """The records, each with its caller's type and tier as they were last known, if it does not tell them itself."""
    unknown = sorted({record.caller for record in made if record.caller is not None and record.caller_type is None})
    facts: dict[str, tuple[str, str | None]] = dict.fromkeys(unknown, (UNKNOWN_TYPE, None))
    facts |= {LOCAL.caller_id: (LOCAL.caller_type, LOCAL.tier)}
    for row in await connection.fetch(sql("caller_known"), unknown) if unknown else ():
        facts[row["caller"]] = row["caller_type"], row["tier"]
    return [
        record
        if record.caller is None or record.caller_type is not None
        else replace(record, caller_type=facts[record.caller][0], tier=facts[record.caller][1])
        for record in made
    ]


async def _errors(connection: asyncpg.Connection, news: Iterable[FeedRow]) -> dict[UUID, Any]:
    failed = sorted({row.at.job_id for row in news if _EVENTS[row.type] is AuditEvent.JOB_FAILED})
    rows = await fetch(connection, "audit_errors", Reader.AUDIT, failed) if failed else []
    return {row["id"]: msgspec.json.decode(row["error"]) for row in rows}


def _of_job(no: int, row: FeedRow, errors: Mapping[UUID, Any]) -> Record:
    payload: dict[str, Any] = {"recipe": row.recipe}
    event = _EVENTS[row.type]
    if event is AuditEvent.JOB_FAILED:
        payload["state"] = _ENDINGS[row.type]
        # A fault's message may contain any text, so the audit records only its code and step.
        error = errors.get(row.at.job_id)
        if isinstance(error, dict):
            payload |= {name: error[name] for name in ("code", "step") if _is_text(error.get(name))}
    return Record(no, row.when, event, row.caller, None, None, row.at.job_id, row.correlation_id, payload_text(payload))


async def _write(connection: asyncpg.Connection, made: Sequence[Record], before: bytes) -> bytes:
    hashes = []
    for record in made:
        before = chain_hash(before, record)
        hashes.append(before)
    await connection.execute(
        *bound(
            "audit_append",
            no=[record.no for record in made],
            at=[record.at for record in made],
            event=[record.event for record in made],
            caller=[record.caller for record in made],
            caller_type=[record.caller_type for record in made],
            tier=[record.tier for record in made],
            job_id=[record.job_id for record in made],
            request_id=[record.request_id for record in made],
            payload=[record.payload for record in made],
            hash=hashes,
        )
    )
    return before


async def _tally(connection: asyncpg.Connection, news: Iterable[FeedRow]) -> None:
    """Count jobs by recipe and state: new jobs as QUEUED, ended jobs by final state with their total duration."""
    counts: dict[tuple[str, str], tuple[int, float]] = {}
    for row in news:
        ending = _ENDINGS.get(row.type)
        seconds = 0.0 if ending is None else (row.when - row.created_at).total_seconds()
        key = (row.recipe, str(ending or JobState.QUEUED))
        count, total = counts.get(key, (0, 0.0))
        counts[key] = (count + 1, total + max(0.0, seconds))
    if counts:
        keys = sorted(counts)
        await connection.execute(
            sql("audit_tally"),
            [recipe for recipe, _ in keys],
            [state for _, state in keys],
            [counts[key][0] for key in keys],
            [counts[key][1] for key in keys],
        )
    await _count_minutes(connection, news)


async def _count_minutes(connection: asyncpg.Connection, news: Iterable[FeedRow]) -> None:
    """Count jobs by the minute of their end and by class of duration."""
    counts: dict[tuple[datetime, str, str, int], int] = {}
    for row in news:
        if (ending := _ENDINGS.get(row.type)) is not None:
            minute = row.when.replace(second=0, microsecond=0)
            length = class_of((row.when - row.created_at).total_seconds())
            key = (minute, row.recipe, str(ending), length)
            counts[key] = counts.get(key, 0) + 1
    if counts:
        keys = sorted(counts)
        columns = [list(column) for column in zip(*keys, strict=True)]
        await connection.execute(sql("audit_minutes"), *columns, [counts[key] for key in keys])
        await connection.execute(sql("minutes_forget"))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\x00" not in value


def _uuid(value: Any) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None
