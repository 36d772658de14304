"""Workers as people see them: host, process, lease, and the attempts in hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg
import msgspec

from windlass.store.database import Database
from windlass.store.plans import plan_of
from windlass.store.statements import sql

AT_WORK_MAX = 2_000


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker process as people see it."""

    id: UUID
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    started_at: datetime
    seen_at: datetime
    lease_until: datetime
    lost_at: datetime | None
    running: int
    # The states of its process's services; None before its first report.
    services: dict[str, str] | None


@dataclass(frozen=True, slots=True)
class AtWork:
    """A step that a worker has in hand."""

    job_id: UUID
    no: int
    step: str
    since: datetime | None


async def listing(db: Database) -> list[WorkerView]:
    """List all known workers, including those lost in the last day."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("worker_list"))
    return [_view(row) for row in rows]


def _view(row: asyncpg.Record) -> WorkerView:
    told = row["services"]
    services = None if told is None else msgspec.json.decode(told, type=dict[str, str])
    return WorkerView(**{**dict(row), "queues": tuple(row["queues"]), "services": services})


async def at_work(db: Database) -> dict[UUID, list[AtWork]]:
    """Return the steps that each worker has in hand, oldest first."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("worker_steps"), AT_WORK_MAX)
    found: dict[UUID, list[AtWork]] = {}
    for row in rows:
        name = (await plan_of(db, row["plan"])).nodes[row["node"]].name
        step = name if row["index"] is None else f"{name}[{row['index']}]"
        found.setdefault(row["worker"], []).append(AtWork(row["job_id"], row["no"], step, row["started_at"]))
    return found
