"""What an installation knows of itself: whether it is served, and since when its positions in the feed hold.

Positions in the feed are made of PostgreSQL's transaction numbers, which belong to one cluster. A dump that is restored
into another one finds other numbers there. So the installation remembers its cluster, and has an epoch that is raised
when that changes: whoever comes with a position of another epoch is told to begin anew, and nothing is mistaken.

A cluster that was copied file by file keeps its name: who goes back in time that way says `windlass db restored`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from windlass.core.errors import BadSetting, Broken
from windlass.store.database import Database
from windlass.store.statements import sql

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


async def serve(db: Database, secret_check: bytes, accepted: Sequence[bytes] = ()) -> Installation:
    """Mark the installation as served, by whoever knows its secret.

    `secret_check` is a digest under the secret that is in use; `accepted` has those of older ones that still count.
    """
    system_id = await _system_id(db)

    async def operation(connection: asyncpg.Connection) -> Installation:
        async with connection.transaction():
            row = await connection.fetchrow(sql("installation_lock"))
            if row["secret_check"] not in (None, secret_check, *accepted):
                raise BadSetting(
                    "the secret is not the one that this installation was first served with",
                    remedy="Set the same secret for every server; to change it, put the new one before the old one",
                )
            is_moved = None not in (system_id, row["system_id"]) and system_id != row["system_id"]
            epoch = row["epoch"] + is_moved
            if is_moved:
                await _begin_anew(connection)
            await connection.execute(sql("installation_begin"))
            await connection.execute(sql("installation_put"), True, epoch, system_id, secret_check)
        return Installation(True, epoch)

    return await db.run(operation)


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


async def _system_id(db: Database) -> int | None:
    async def operation(connection: asyncpg.Connection) -> int | None:
        try:
            system_id: int = await connection.fetchval(sql("installation_system"))
        except asyncpg.InsufficientPrivilegeError:
            return None
        return system_id

    return await db.run(operation)
