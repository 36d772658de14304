"""Who held a place at which commit: a log of the slots, kept by the server itself in the commits that change them.

Looking now and then would miss what lasted a moment. A trigger notes every change with its transaction, and the server
knows when each transaction was committed. Whoever was granted a freed place saw that it was free, so he committed after
it was: in the order of commits, nobody may ever hold more than there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

_INSTALL = """
CREATE SCHEMA chaos;
CREATE TABLE chaos.slots (
    seq bigserial, xid xid, job_id uuid, no int, provider text, key text, most int, is_held boolean
);
CREATE FUNCTION chaos.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    one windlass.slots := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO chaos.slots (xid, job_id, no, provider, key, most, is_held)
    VALUES (pg_current_xact_id()::xid, one.job_id, one.no, one.provider, one.key, one.most,
            TG_OP <> 'DELETE' AND one.state = 'HELD');
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE OR DELETE ON windlass.slots
    FOR EACH ROW EXECUTE FUNCTION chaos.note();
"""
_READ = """
SELECT job_id, no, provider, key, most, is_held, pg_xact_commit_timestamp(xid) AS at, xid::text AS xid
FROM chaos.slots ORDER BY pg_xact_commit_timestamp(xid), xid::text::bigint, seq
"""

Row = Mapping[str, Any]


async def install(connection: asyncpg.Connection) -> None:
    """Have every change noted; the server must keep the times of commits."""
    await connection.execute(_INSTALL)


async def read(connection: asyncpg.Connection) -> list[Row]:
    """Every change, in the order of commits."""
    rows: list[Row] = await connection.fetch(_READ)
    return rows


def held_at_most(rows: Sequence[Row]) -> dict[str, int]:
    """How many places of each provider and of each key were held at once, at the most."""
    held: dict[str, set[tuple[UUID, int]]] = {}
    most: dict[str, int] = {}
    for at, row in enumerate(rows):
        for line in _lines(row):
            holders = held.setdefault(line, set())
            (holders.add if row["is_held"] else holders.discard)((row["job_id"], row["no"]))
        if at + 1 == len(rows) or rows[at + 1]["xid"] != row["xid"]:
            # That was the last change of a commit.
            for line, holders in held.items():
                most[line] = max(most.get(line, 0), len(holders))
    return most


def _lines(row: Row) -> list[str]:
    provider = [f"provider {row['provider']}"] if row["provider"] else []
    return provider + ([f"key {row['key']}"] if row["key"] else [])


def limits(rows: Sequence[Row], places: Mapping[str, int]) -> dict[str, int]:
    """How many there are of each; `places` are the providers'."""
    found = {f"provider {name}": count for name, count in places.items()}
    return found | {f"key {row['key']}": row["most"] for row in rows if row["key"]}
