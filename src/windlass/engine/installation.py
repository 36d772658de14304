"""The installation's own row: whether it is served, and the epoch of positions in the feed.

A position is valid for one history of the database. Three events begin another history, and each raises the epoch. A
client with a position of another epoch must start again.

- **Another cluster.** Positions consist of PostgreSQL's transaction numbers, which belong to one cluster. A dump
  restored into another cluster finds other numbers there, so the installation remembers its cluster.
- **Another timeline.** A promoted standby may lack the last commits of its primary, and assigns their transaction
  numbers again. It continues on a new timeline, which the installation remembers too. Every engine checks it every ten
  seconds and after an outage (`loops/runner.py`), every hub after a lost connection (`api/history.py`).
- **A copy of the files.** It keeps both cluster and timeline, so the operator must run `windlass db restored`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
import msgspec

from windlass.core.errors import BadSetting, Broken
from windlass.pure.audit import AuditEvent
from windlass.store.database import Database
from windlass.store.statements import sql

log = logging.getLogger("windlass.engine")

# Errors of a server that has no timeline to report (a standby), or reports it only to privileged users.
_UNTOLD = (
    asyncpg.InsufficientPrivilegeError,
    asyncpg.FeatureNotSupportedError,
    asyncpg.UndefinedFunctionError,
    asyncpg.ObjectNotInPrerequisiteStateError,
)
# Every followed event may have to be rewritten.
RESTORE_MAX_S = 3600.0


@dataclass(frozen=True, slots=True)
class Installation:
    """Whether a service runs, so that every job is followed; and the epoch of positions in the feed."""

    is_served: bool
    epoch: int


async def read(db: Database) -> Installation:
    """Read the installation's row."""
    row = await db.run(lambda connection: connection.fetchrow(sql("installation_get")))
    if row is None:
        raise Broken("the installation's row is missing")
    return Installation(row["is_served"], row["epoch"])


async def look(db: Database) -> Installation:
    """Read the installation's row and check the server's timeline. A new timeline raises the epoch and is audited.

    Costs one read. A server that does not report its timeline hides a promotion.
    """

    async def operation(connection: asyncpg.Connection) -> Installation:
        try:
            row = await connection.fetchrow(sql("installation_timeline"))
        except _UNTOLD:
            row = await connection.fetchrow(sql("installation_get"))
            return Installation(row["is_served"], row["epoch"])
        if row["timeline"] == row["now"]:
            return Installation(row["is_served"], row["epoch"])
        async with connection.transaction():
            locked = await connection.fetchrow(sql("installation_lock"))
            return await _on_timeline(connection, locked, row["now"])

    return await db.run(operation)


async def _on_timeline(connection: asyncpg.Connection, row: asyncpg.Record, now: int) -> Installation:
    """Store the timeline, in the transaction that has locked the row."""
    before, epoch = row["timeline"], row["epoch"]
    if before not in (None, now):
        # Raised by the number of promotions: a second promotion may lose the commit that raised the epoch for the
        # first.
        epoch += max(1, now - before)
        log.warning("the database continues on timeline %d, after %d: followers start again", now, before)
        if row["is_served"]:
            payload = msgspec.json.encode({"timeline": now, "before": before, "epoch": epoch}).decode()
            await connection.execute(sql("audit_note"), AuditEvent.TIMELINE_CHANGED, None, payload)
    if before != now:
        await connection.execute(sql("installation_set_timeline"), now, epoch)
    return Installation(row["is_served"], epoch)


async def serve(db: Database, secret_check: bytes, accepted: Sequence[bytes] = ()) -> Installation:
    """Mark the installation as served. Refuses a server with another secret.

    `secret_check` is a digest under the current secret; `accepted` has the digests under older secrets that are still
    valid.
    """
    system_id = await _system_id(db)

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            row = await connection.fetchrow(sql("installation_lock"))
            if row["secret_check"] not in (None, secret_check, *accepted):
                raise BadSetting(
                    "this is not the secret of this installation",
                    remedy="Set WINDLASS_SECRET to the same value for every server. If the first server had no "
                    "setting, its secret is in the file `secret` of its home (.windlass, or WINDLASS_HOME). To change "
                    "the secret, put the new one before the old one",
                )
            is_moved = None not in (system_id, row["system_id"]) and system_id != row["system_id"]
            epoch = row["epoch"] + is_moved
            if is_moved:
                await _begin_anew(connection)
            await connection.execute(sql("installation_begin"))
            await connection.execute(sql("installation_put"), True, epoch, system_id, secret_check)

    await db.run(operation)
    # A server that was down during a promotion learns of it here.
    return await look(db)


async def is_secret(db: Database, checks: Sequence[bytes]) -> bool:
    """Report whether one of these digests is of the secret that serves the installation."""
    found = await db.run(lambda connection: connection.fetchval(sql("installation_is_secret"), list(checks)))
    return bool(found)


async def restored(db: Database) -> Installation:
    """Start a new epoch after a restore, also on the same cluster. Earlier positions in the feed become invalid."""
    system_id = await _system_id(db)

    async def operation(connection: asyncpg.Connection) -> Installation:
        async with connection.transaction():
            row = await connection.fetchrow(sql("installation_lock"))
            epoch = row["epoch"] + 1
            await _begin_anew(connection)
            await connection.execute(sql("installation_put"), row["is_served"], epoch, system_id, row["secret_check"])
        return Installation(row["is_served"], epoch)

    return await db.run(operation)


async def _begin_anew(connection: asyncpg.Connection) -> None:
    await connection.execute(sql("installation_untold"), timeout=RESTORE_MAX_S)
    await connection.execute(sql("installation_forget"), timeout=RESTORE_MAX_S)
    await connection.execute(sql("installation_cursors"))
    await connection.execute(sql("installation_resume"))
    await connection.execute(sql("installation_forget_timeline"))


async def _system_id(db: Database) -> int | None:
    async def operation(connection: asyncpg.Connection) -> int | None:
        try:
            system_id: int = await connection.fetchval(sql("installation_system"))
        except asyncpg.InsufficientPrivilegeError:
            return None
        return system_id

    return await db.run(operation)
