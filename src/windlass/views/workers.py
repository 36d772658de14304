"""Workers as people see them: where each process runs, its lease, and the steps that it has in hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from windlass.store.database import Database
from windlass.store.plans import plan_of
from windlass.store.statements import sql

AT_WORK_MAX = 2_000


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker process as a person sees it."""

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


@dataclass(frozen=True, slots=True)
class AtWork:
    """A step that a worker has in hand."""

    job_id: UUID
    no: int
    step: str
    since: datetime | None


async def listing(db: Database) -> list[WorkerView]:
    """Every worker that is known, the lost ones of the last day too."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("worker_list"))
    return [WorkerView(**{**dict(row), "queues": tuple(row["queues"])}) for row in rows]


async def at_work(db: Database) -> dict[UUID, list[AtWork]]:
    """What each worker has in hand, what it began first in front."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("worker_steps"), AT_WORK_MAX)
    found: dict[UUID, list[AtWork]] = {}
    for row in rows:
        name = (await plan_of(db, row["plan"])).nodes[row["node"]].name
        step = name if row["index"] is None else f"{name}[{row['index']}]"
        found.setdefault(row["worker"], []).append(AtWork(row["job_id"], row["no"], step, row["started_at"]))
    return found
