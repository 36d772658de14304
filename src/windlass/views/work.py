"""The provider jobs of a job's steps, as people see them."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from windlass.store.database import Database
from windlass.store.statements import sql

FORGOTTEN_MAX = 1_000


class WorkView(NamedTuple):
    """One round of a provider job, as people see it."""

    job_id: UUID
    no: int
    round: int
    attempt: int
    provider: str
    external_id: str | None
    state: str
    status: str | None
    polls: int
    due_at: datetime | None
    created_at: datetime
    submitted_at: datetime | None
    ended_at: datetime | None


async def work_of(db: Database, job_id: UUID) -> list[WorkView]:
    """Return all provider jobs of the job."""
    rows = await db.run(lambda connection: connection.fetch(sql("work_of"), job_id))
    return [WorkView(*row) for row in rows]


async def forgotten(db: Database, provider: str, older_than_s: float, *, limit: int = FORGOTTEN_MAX) -> list[WorkView]:
    """Return the provider's unfinished work that began longer ago than this, oldest first."""
    rows = await db.run(lambda connection: connection.fetch(sql("work_forgotten"), provider, older_than_s, limit))
    return [WorkView(*row) for row in rows]
