"""What an installation knows of itself: whether it is served, and since when its positions in the feed hold.

A position is good for one history of the database. Three things begin another one, and each raises the epoch: a client
that comes with a position of another epoch is told to begin anew.

- **Another cluster.** Positions are made of PostgreSQL's transaction numbers, which belong to one cluster. A dump that
  is restored into another one finds other numbers there, so the installation remembers its cluster.
- **Another timeline.** A standby that is promoted may lack the last commits of its primary, and gives out their
  transaction numbers again. It continues on a new timeline, which the installation remembers too. Every engine looks
  each ten seconds and after an outage (`loops/runner.py`), every hub after a lost connection (`api/history.py`).
- **A copy of the files.** It keeps both: `windlass db restored` says so.
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

# What a server answers that has no timeline to tell of, or does not tell everybody. A standby has none of its own.
_UNTOLD = (
    asyncpg.InsufficientPrivilegeError,
    asyncpg.FeatureNotSupportedError,
    asyncpg.UndefinedFunctionError,
    asyncpg.ObjectNotInPrerequisiteStateError,
)
# Every followed event may have to be written anew.
RESTORE_MAX_S = 3600.0


@dataclass(frozen=True, slots=True)
class Installation:
    """Whether there is a service, so that every job is followed; and the epoch of positions in the feed."""

    is_served: bool
    epoch: int


async def read(db: Database) -> Installation:
    """As it is now."""
    row = await db.run(lambda connection: connection.fetchrow(sql("installation_get")))
    if row is None:
        raise Broken("the installation's own row is gone")
    return Installation(row["is_served"], row["epoch"])


async def look(db: Database) -> Installation:
    """As it is now, after a look at the server's timeline: a new one raises the epoch and is audited.

    Costs a read. Where the server does not tell its timeline, a promotion is not noticed.
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
    """Remember the timeline, in the transaction that has locked the row."""
    before, epoch = row["timeline"], row["epoch"]
    if before not in (None, now):
        # By as many as there were promotions: the epoch between two of them may be lost with the second one's tail.
        epoch += max(1, now - before)
        log.warning("the database continues on timeline %d, after %d: followers begin anew", now, before)
        if row["is_served"]:
            payload = msgspec.json.encode({"timeline": now, "before": before, "epoch": epoch}).decode()
            await connection.execute(sql("audit_note"), AuditEvent.TIMELINE_CHANGED, None, payload)
    if before != now:
        await connection.execute(sql("installation_set_timeline"), now, epoch)
    return Installation(row["is_served"], epoch)


async def serve(db: Database, secret_check: bytes, accepted: Sequence[bytes] = ()) -> Installation:
    """Mark the installation as served, by whoever knows its secret.

    `secret_check` is a digest under the secret that is in use; `accepted` has those of older ones that still count.
    """
    system_id = await _system_id(db)

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            row = await connection.fetchrow(sql("installation_lock"))
            if row["secret_check"] not in (None, secret_check, *accepted):
                raise BadSetting(
                    "the secret is not the one that this installation was first served with",
                    remedy="Set WINDLASS_SECRET to the same value for every server. If it was not set for the first "
                    "one, it is in the file `secret` of that server's home (.windlass, or WINDLASS_HOME). To change "
                    "it, put the new one before the old one",
                )
            is_moved = None not in (system_id, row["system_id"]) and system_id != row["system_id"]
            epoch = row["epoch"] + is_moved
            if is_moved:
                await _begin_anew(connection)
            await connection.execute(sql("installation_begin"))
            await connection.execute(sql("installation_put"), True, epoch, system_id, secret_check)

    await db.run(operation)
    # A server that was away for a promotion learns of it here.
    return await look(db)


async def is_secret(db: Database, checks: Sequence[bytes]) -> bool:
    """Whether one of these digests is of the secret that the installation is served with."""
    found = await db.run(lambda connection: connection.fetchval(sql("installation_is_secret"), list(checks)))
    return bool(found)


async def restored(db: Database) -> Installation:
    """The database was restored, whatever its cluster says: positions in the feed from before mean nothing now."""
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
