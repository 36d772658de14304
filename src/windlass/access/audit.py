"""Writing to the audit, and reading it.

An action's note is written in the action's own transaction. The engine's auditor turns notes into records of the chain
(`engine/loops/auditor.py`), so nobody who acts waits for the chain.

Refusals are counted in memory and noted once a second, one note for all that are alike: a flood of bad requests is not
to become a flood of writes. A process that is killed may lose its last second of refusals, never an action.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.caller import CallerContext
from windlass.core.errors import Unavailable
from windlass.pure.audit import GENESIS, AuditEvent, Flaw, Record, payload_text, verify
from windlass.store.database import Database
from windlass.store.outage import OutageLog
from windlass.store.statements import sql

NOTE_EVERY_S = 1.0
# Beyond so many kinds of refusals within a second, the others are counted together.
KINDS_MAX = 1_000
OTHERS = "others"
PAGE_MAX = 1_000

log = logging.getLogger("windlass.access")


async def write_note(
    connection: asyncpg.Connection,
    event: AuditEvent,
    caller: str | None,
    /,
    *,
    job_id: UUID | None = None,
    request_id: str | None = None,
    **payload: Any,
) -> None:
    """Note that something was done, in the transaction that this connection is in."""
    await connection.execute(sql("audit_note"), event, caller, _text(job_id, request_id, payload))


class Audit:
    """What the service notes. `start` it for refusals to be written."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._outages = OutageLog(log, "the audit of refusals")
        self._refusals: dict[tuple[str, str, str], tuple[int, str | None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()

    async def start(self) -> None:
        """Begin to write refusals once a second."""
        self._is_over.clear()
        self._task = asyncio.create_task(self._run(), name="windlass-audit")

    async def stop(self) -> None:
        """Write what is left, and end."""
        self._is_over.set()
        if self._task is not None:
            # Not cancelled: what it is writing at this moment would be lost.
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.flush()

    async def note(
        self,
        connection: asyncpg.Connection | None,
        event: AuditEvent,
        ctx: CallerContext,
        /,
        *,
        job_id: UUID | None = None,
        request_id: str | None = None,
        **payload: Any,
    ) -> None:
        """Note what a caller did: in the transaction of this connection, or by itself.

        By itself it is written at least once: an answer that is lost with its connection makes it be written again.
        """
        about = {"caller_type": ctx.caller_type, "tier": ctx.tier, "key": ctx.key_id}
        known = {name: value for name, value in about.items() if value is not None}
        text = _text(job_id, request_id, {**known, **payload})
        if connection is not None:
            await connection.execute(sql("audit_note"), event, ctx.caller_id, text)
        else:
            await self._db.run(lambda own: own.execute(sql("audit_note"), event, ctx.caller_id, text))

    def refused(self, event: AuditEvent, who: str, reason: str, request_id: str | None = None) -> None:
        """Count a refusal. `who` is a caller or the public part of a key, never a key."""
        kind = (str(event), who, reason)
        if kind not in self._refusals and len(self._refusals) >= KINDS_MAX:
            kind = (str(event), OTHERS, reason)
        count, first = self._refusals.get(kind, (0, request_id))
        self._refusals[kind] = (count + 1, first)

    async def flush(self) -> int:
        """Write the refusals that were counted since the last time; how many notes that took."""
        counted, self._refusals = self._refusals, {}
        if not counted:
            return 0
        events, callers, payloads = [], [], []
        for (event, who, reason), (count, request_id) in sorted(counted.items()):
            events.append(event)
            # A rejected key has no caller: who it claims to be is not known.
            callers.append(who if event == AuditEvent.RATE_LIMIT_HIT else None)
            payload: dict[str, Any] = {"reason": reason, "count": count}
            if event != AuditEvent.RATE_LIMIT_HIT:
                payload["key"] = who
            payloads.append(_text(None, request_id, payload))
        try:
            await self._db.run(lambda own: own.execute(sql("audit_note_many"), events, callers, payloads))
        except Unavailable as error:
            self._outages.note(error)
            return 0
        self._outages.over()
        return len(events)

    async def _run(self) -> None:
        while not self._is_over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(NOTE_EVERY_S):
                    await self._is_over.wait()
            try:
                await self.flush()
            except Exception:
                # The audit of refusals must not end because one of them could not be written.
                log.exception("refusals could not be written to the audit")


async def records(
    db: Database,
    *,
    caller: str | None = None,
    event: str | None = None,
    job_id: UUID | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    after_no: int = 0,
    before_no: int | None = None,
    limit: int = 100,
) -> list[tuple[Record, bytes]]:
    """Records with their hashes that fit all that is given: in the order of the chain, or backwards from one."""
    if job_id is not None:
        ways = ("audit_page_job", "audit_newest_job")
    elif caller is not None:
        ways = ("audit_page_caller", "audit_newest_caller")
    elif event is not None:
        ways = ("audit_page_event", "audit_newest_event")
    else:
        ways = ("audit_page", "audit_newest")
    statement = ways[before_no is not None]
    start = after_no if before_no is None else before_no
    return await _page(db, statement, (start, min(limit, PAGE_MAX), caller, event, job_id, since, until))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a look at the chain found.

    `head` is the hash of the last record that was looked at. Whoever notes it elsewhere can show later that nothing up
    to there was changed, not even by writing the whole chain anew. `next` is where to go on, if there is more.
    """

    records: int
    head: bytes
    flaw: Flaw | None
    next: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether everything that was looked at is as it was written."""
        return self.flaw is None


async def verify_chain(
    db: Database, *, head: bytes | None = None, batch: int = 5_000, after_no: int = 0, limit: int | None = None
) -> Verdict:
    """Go through the chain after this record, and say where it first does not hold.

    A `head` that was noted earlier must be found, in this part or in those before it: without it, records that were cut
    off at the end are not missed.
    """
    no, before, is_head_seen = after_no, GENESIS, head is None or head == GENESIS
    if after_no:
        found = await _page(db, "audit_page", (after_no - 1, 1, None, None, None, None, None))
        if not found or found[0][0].no != after_no:
            return Verdict(0, GENESIS, Flaw(after_no, f"record {after_no} is missing"))
        before = found[0][1]
        is_head_seen = is_head_seen or before == head
    while limit is None or no - after_no < limit:
        size = batch if limit is None else min(batch, limit - (no - after_no))
        page = await _page(db, "audit_page", (no, size, None, None, None, None, None))
        flaw = verify(page, before, no + 1)
        if flaw is not None:
            return Verdict(flaw.no - 1 - after_no, before, flaw)
        if page:
            no, before = page[-1][0].no, page[-1][1]
            is_head_seen = is_head_seen or any(digest == head for _, digest in page)
        if len(page) < size:
            if not is_head_seen and not await _has_head(db, after_no, head):
                reason = "the head that was noted is not in the chain: records were removed, or it was written anew"
                return Verdict(no - after_no, before, Flaw(no + 1, reason))
            return Verdict(no - after_no, before, None)
    return Verdict(no - after_no, before, None, no)


async def _has_head(db: Database, up_to_no: int, head: bytes | None) -> bool:
    return bool(await db.run(lambda connection: connection.fetchval(sql("audit_has_head"), up_to_no, head)))


async def _page(db: Database, statement: str, values: tuple[Any, ...]) -> list[tuple[Record, bytes]]:
    rows = await db.run(lambda connection: connection.fetch(sql(statement), *values))
    return [(_record(row), row["hash"]) for row in rows]


def _record(row: asyncpg.Record) -> Record:
    return Record(
        row["no"],
        row["at"],
        row["event"],
        row["caller"],
        row["caller_type"],
        row["tier"],
        row["job_id"],
        row["request_id"],
        row["payload"],
    )


def _text(job_id: UUID | None, request_id: str | None, payload: dict[str, Any]) -> str:
    """The payload of a note. The auditor takes out again what has a column of its own in a record."""
    own = {"job_id": None if job_id is None else str(job_id), "request_id": request_id}
    return payload_text({**{name: value for name, value in own.items() if value is not None}, **payload})
