"""Many jobs of many callers, written as rows: what lists are tried on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.states import JOB_TERMINAL, JobState

START = datetime(2026, 1, 1, tzinfo=UTC)
_TROUBLE = JOB_TERMINAL - {JobState.COMPLETED}

INSERT = """
    INSERT INTO windlass.jobs (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input,
                               error, labels, created_at, trouble, deleted_at)
    SELECT id, recipe, 'p', state, caller, 0, 1, 1, 0, '{"big": 1}', error::json, labels::jsonb, at,
           CASE WHEN state = ANY ($9::text[]) THEN state END, deleted_at
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
                $8::timestamptz[]) AS x (id, recipe, state, caller, error, labels, at, deleted_at)
"""
# A job every 100 ms; a caller's jobs lie a thousand apart. One in twenty failed, one in ten belongs to a corpus.
MANY = """
    INSERT INTO windlass.jobs (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input,
                               error, labels, created_at, started_at, finished_at, trouble)
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008'
            || substr(md5(n::text), 1, 15))::uuid,
           'r' || hash % 7, 'p', state, 'caller-' || lpad((n % $2)::text, 4, '0'), 0, 5, 1, 0, '{"n": 1}',
           CASE WHEN state = 'FAILED' THEN json_build_object('code', 'x', 'step', 's' || hash % 5) END,
           CASE WHEN hash % 10 = 0 THEN jsonb_build_object('corpus', 'c' || hash % 4, 'lang', 'l' || hash % 3)
                WHEN hash % 3 = 0 THEN jsonb_build_object('lang', 'l' || hash % 3) END,
           at, at, at, CASE WHEN state <> 'COMPLETED' AND state <> 'QUEUED' THEN state END
    FROM generate_series(1, $1::int) AS n,
         LATERAL (SELECT $3::timestamptz + n * interval '100 ms' AS at, n / $2 AS hash) t,
         LATERAL (SELECT CASE WHEN hash % 20 = 7 THEN 'FAILED' WHEN hash % 100 = 9 THEN 'CANCELLED'
                              WHEN hash % 50 = 11 THEN 'QUEUED' ELSE 'COMPLETED' END AS state) s
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A job as far as lists can tell."""

    n: int
    caller: str = "ada"
    state: JobState = JobState.COMPLETED
    recipe: str = "r"
    labels: dict[str, str] = field(default_factory=dict)
    step: str | None = None
    is_deleted: bool = False

    @property
    def at(self) -> datetime:
        return START + timedelta(seconds=self.n)

    @property
    def id(self) -> UUID:
        return UUID(int=(int(self.at.timestamp() * 1000) << 80) + 7)


async def insert(connection: asyncpg.Connection, rows: list[Row]) -> None:
    await connection.execute(
        INSERT,
        [row.id for row in rows],
        [row.recipe for row in rows],
        [str(row.state) for row in rows],
        [row.caller for row in rows],
        [None if row.step is None else msgspec.json.encode({"step": row.step}).decode() for row in rows],
        [msgspec.json.encode(row.labels).decode() if row.labels else None for row in rows],
        [row.at for row in rows],
        [row.at if row.is_deleted else None for row in rows],
        [str(state) for state in _TROUBLE],
    )


async def insert_many(connection: asyncpg.Connection, jobs: int, callers: int) -> None:
    """A large table, with the statistics that a server would have of it."""
    await connection.execute("SET synchronous_commit = off")
    await connection.execute(MANY, jobs, callers, START, timeout=600)
    await connection.execute("VACUUM ANALYZE windlass.jobs", timeout=600)
