"""Writes audit notes and reads audit records.

An action writes its note in its own transaction. The engine's auditor turns notes into records of the chain
(`engine/loops/auditor.py`), so an action never waits for the chain.

Refusals are counted in memory and written once a second, one note for equal refusals. So a flood of bad requests does
not become a flood of writes. A killed process may lose its last second of refusals, but never an action.
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
# Beyond this many kinds of refusals within a second, further kinds are counted together.
KINDS_MAX = 1_000
OTHERS = "others"
PAGE_MAX = 1_000
# A process remembers this many callers. It waits this long before it writes another type or tier of the same caller: a
# caller with keys of two tiers must not cost a write for each request.
KNOWN_MAX = 10_000
KNOWN_FOR_S = 10.0

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
    """Write a note about an action, in the current transaction of this connection."""
    await connection.execute(sql("audit_note"), event, caller, _text(job_id, request_id, payload))


class Audit:
    """Writes the service's audit notes. Refusals are written only after `start`."""

    name = "audit"

    def __init__(self, db: Database) -> None:
        self._db = db
        self._outages = OutageLog(log, "the audit of refusals")
        self._refusals: dict[tuple[str, str, str], tuple[int, str | None]] = {}
        # By caller: the type and tier last written, and until when they are not written again.
        self._known: dict[str, tuple[tuple[str, str | None], float]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()
        self._turned_s = 0.0

    async def start(self) -> None:
        """Begin to write refusals once a second."""
        self._is_over.clear()
        self._turned_s = asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._run(), name="windlass-audit")

    async def stop(self) -> None:
        """Write the remaining refusals, and end."""
        self._is_over.set()
        if self._task is not None:
            # The task is not cancelled: cancelling would lose the note that it is writing.
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.flush()

    def alive(self) -> float | None:
        """Return the seconds since the last turn of the task; None while it does not run."""
        return None if self._task is None else asyncio.get_running_loop().time() - self._turned_s

    def ready(self) -> bool:
        """Tell whether the task that writes refusals is running."""
        return self._task is not None and not self._task.done()

    async def know(self, ctx: CallerContext) -> None:
        """Remember a caller's type and tier for records that name only the caller, such as the records of its jobs.

        A process writes them once for each caller, and again when the type or the tier changes.
        """
        facts, known = (ctx.caller_type, ctx.tier), self._known.get(ctx.caller_id)
        if known is not None and known[0] == facts:
            return
        now_s = asyncio.get_running_loop().time()
        if known is not None and now_s < known[1]:
            return
        while len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[ctx.caller_id] = facts, now_s + KNOWN_FOR_S
        try:
            await self._db.run(lambda connection: connection.execute(sql("caller_know"), ctx.caller_id, *facts))
        except Unavailable as error:
            # A request can do without this row; the caller's next request writes it.
            self._known.pop(ctx.caller_id, None)
            self._outages.note(error)

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
        """Write a note about a caller's action, in the transaction of this connection or in a separate one.

        Without a connection the note is written at least once: if the answer is lost with its connection, it is written
        again.
        """
        about = {"caller_type": ctx.caller_type, "tier": ctx.tier, "key": ctx.key_id}
        known = {name: value for name, value in about.items() if value is not None}
        text = _text(job_id, request_id, {**known, **payload})
        if connection is not None:
            await connection.execute(sql("audit_note"), event, ctx.caller_id, text)
        else:
            await self._db.run(lambda connection: connection.execute(sql("audit_note"), event, ctx.caller_id, text))

    def refused(self, event: AuditEvent, who: str, reason: str, request_id: str | None = None) -> None:
        """Count a refusal. `who` is a caller or the public part of a key, never a key."""
        kind = (str(event), who, reason)
        if kind not in self._refusals and len(self._refusals) >= KINDS_MAX:
            kind = (str(event), OTHERS, reason)
        count, first = self._refusals.get(kind, (0, request_id))
        self._refusals[kind] = (count + 1, first)

    async def flush(self) -> int:
        """Write the refusals counted since the last call; return the number of notes written."""
        counted, self._refusals = self._refusals, {}
        if not counted:
            return 0
        events, callers, payloads = [], [], []
        for (event, who, reason), (count, request_id) in sorted(counted.items()):
            events.append(event)
            # A rejected key has no known caller.
            callers.append(who if event == AuditEvent.RATE_LIMIT_HIT else None)
            payload: dict[str, Any] = {"reason": reason, "count": count}
            if event != AuditEvent.RATE_LIMIT_HIT:
                payload["key"] = who
            payloads.append(_text(None, request_id, payload))
        try:
            await self._db.run(lambda connection: connection.execute(sql("audit_note_many"), events, callers, payloads))
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
            self._turned_s = asyncio.get_running_loop().time()
            try:
                await self.flush()
            except Exception:
                # One failed write must not end the audit of refusals.
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
    """Return the records, with their hashes, that match every given filter.

    They come in the order of the chain after `after_no`, or backwards from `before_no`.
    """
    if job_id is not None:
        statements = ("audit_page_job", "audit_newest_job")
    elif caller is not None:
        statements = ("audit_page_caller", "audit_newest_caller")
    elif event is not None:
        statements = ("audit_page_event", "audit_newest_event")
    else:
        statements = ("audit_page", "audit_newest")
    statement = statements[0 if before_no is None else 1]
    start = after_no if before_no is None else before_no
    return await _page(db, statement, (start, min(limit, PAGE_MAX), caller, event, job_id, since, until))


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """The result of verifying the chain.

    `head` is the hash of the last verified record. A reader who stores it elsewhere can later prove that no record up
    to there was changed, not even by rewriting the whole chain. `next` is the number to continue from, if records
    remain.
    """

    records: int
    head: bytes
    flaw: Flaw | None
    next: int | None = None

    @property
    def is_whole(self) -> bool:
        """Tell whether every verified record is as it was written."""
        return self.flaw is None


async def verify_chain(
    db: Database, *, head: bytes | None = None, batch: int = 5_000, after_no: int = 0, limit: int | None = None
) -> ChainVerdict:
    """Verify the chain after record `after_no`, and report the first flaw.

    A `head` stored earlier must occur in this part of the chain or before it. Without a `head`, records cut off at the
    end are not detected.
    """
    no, before, is_head_seen = after_no, GENESIS, head is None or head == GENESIS
    if after_no:
        found = await _page(db, "audit_page", (after_no - 1, 1, None, None, None, None, None))
        if not found or found[0][0].no != after_no:
            return ChainVerdict(0, GENESIS, Flaw(after_no, f"record {after_no} is missing"))
        before = found[0][1]
        is_head_seen = is_head_seen or before == head
    while limit is None or no - after_no < limit:
        size = batch if limit is None else min(batch, limit - (no - after_no))
        page = await _page(db, "audit_page", (no, size, None, None, None, None, None))
        flaw = verify(page, before, no + 1)
        if flaw is not None:
            return ChainVerdict(flaw.no - 1 - after_no, before, flaw)
        if page:
            no, before = page[-1][0].no, page[-1][1]
            is_head_seen = is_head_seen or any(digest == head for _, digest in page)
        if len(page) < size:
            if not is_head_seen and not await _has_head(db, after_no, head):
                reason = "the noted head is not in the chain: records were removed, or the chain was rewritten"
                return ChainVerdict(no - after_no, before, Flaw(no + 1, reason))
            return ChainVerdict(no - after_no, before, None)
    return ChainVerdict(no - after_no, before, None, no)


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
    """Build the payload of a note. The auditor moves `job_id` and `request_id` into their columns of the record."""
    own = {"job_id": None if job_id is None else str(job_id), "request_id": request_id}
    return payload_text({**{name: value for name, value in own.items() if value is not None}, **payload})
