"""A log of the slots: which step held a slot at which commit. The server writes it in the commits that change slots.

Polling would miss a slot held for a moment. A trigger logs every change with its transaction, and the server knows the
commit time of each transaction. A step that was granted a freed slot saw that it was free, so it committed after the
release. So in the order of commits, the held slots may never exceed the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

_INSTALL = """
CREATE SCHEMA chaos;
CREATE TABLE chaos.slots (
    seq bigserial, xid xid, job_id uuid, no int, provider text, places int, key text, most int, takes int,
    is_held boolean
);
CREATE FUNCTION chaos.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    one windlass.slots := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO chaos.slots (xid, job_id, no, provider, places, key, most, takes, is_held)
    VALUES (pg_current_xact_id()::xid, one.job_id, one.no, one.provider, one.places, one.key, one.most, one.takes,
            TG_OP <> 'DELETE' AND one.state = 'HELD');
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE OR DELETE ON windlass.slots
    FOR EACH ROW EXECUTE FUNCTION chaos.note();
"""
_READ = """
SELECT job_id, no, provider, places, key, most, takes, is_held, pg_xact_commit_timestamp(xid) AS at, xid::text AS xid
FROM chaos.slots ORDER BY pg_xact_commit_timestamp(xid), xid::text::bigint, seq
"""

Row = Mapping[str, Any]


async def install(connection: asyncpg.Connection) -> None:
    """Install the trigger; the server must track commit timestamps."""
    await connection.execute(_INSTALL)


async def read(connection: asyncpg.Connection) -> list[Row]:
    """Return every change, in the order of commits."""
    rows: list[Row] = await connection.fetch(_READ)
    return rows


def held_at_most(rows: Sequence[Row]) -> dict[str, int]:
    """Return the largest number of slots of each provider, and the largest amount of each key, held at once."""
    held: dict[str, dict[tuple[UUID, int], int]] = {}
    most: dict[str, int] = {}
    for at, row in enumerate(rows):
        for line, amount in _lines(row):
            holders = held.setdefault(line, {})
            holders.pop((row["job_id"], row["no"]), None)
            if row["is_held"]:
                holders[row["job_id"], row["no"]] = amount
        if at + 1 == len(rows) or rows[at + 1]["xid"] != row["xid"]:
            # This row is the last change of a commit.
            for line, holders in held.items():
                most[line] = max(most.get(line, 0), sum(holders.values()))
    return most


def _lines(row: Row) -> list[tuple[str, int]]:
    provider = [(f"provider {row['provider']}", row["places"])] if row["provider"] else []
    return provider + ([(f"key {row['key']}", row["takes"])] if row["key"] else [])


def limits(rows: Sequence[Row], places: Mapping[str, int]) -> dict[str, int]:
    """Return the limit of each provider and key; `places` are the providers' limits."""
    found = {f"provider {name}": count for name, count in places.items()}
    return found | {f"key {row['key']}": row["most"] for row in rows if row["key"]}
