"""Looks at jobs that share round trips: while one is under way, the next ones gather.

Every submit is answered with its job as it stands, and most requests begin with a look at a job, so at a high rate the
looks would cost as much as the commits.
"""

from __future__ import annotations

import asyncio
from functools import partial
from uuid import UUID

import asyncpg

from windlass.core.errors import NotFound
from windlass.core.visibility import Reader
from windlass.store.database import Database
from windlass.store.outputs import Row, fetch
from windlass.views.read import JobView, view_of

TOGETHER_MAX = 200


class JobLooks:
    """Reads jobs by id, many at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._waiting: dict[UUID, list[asyncio.Future[JobView | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def job(self, job_id: UUID) -> JobView:
        """The job, as it is at some moment after the question."""
        answer: asyncio.Future[JobView | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, []).append(answer)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain(), name="windlass-looks")
        found = await answer
        if found is None:
            raise NotFound(f"there is no job {job_id}", remedy="GET /jobs lists yours")
        return found

    async def _drain(self) -> None:
        while self._waiting:
            ids = list(self._waiting)[:TOGETHER_MAX]
            batch = {job_id: self._waiting.pop(job_id) for job_id in ids}
            try:
                rows = await self._db.run(partial(_read, ids=ids))
            except Exception as error:
                _tell(batch, error)
                continue
            found = {view.id: view for view in (view_of(JobView, row) for row in rows)}
            for job_id, answers in batch.items():
                for answer in answers:
                    if not answer.done():
                        answer.set_result(found.get(job_id))


async def _read(connection: asyncpg.Connection, ids: list[UUID]) -> list[Row]:
    return await fetch(connection, "graph_jobs", Reader.CALLER, ids)


def _tell(batch: dict[UUID, list[asyncio.Future[JobView | None]]], error: Exception) -> None:
    for answers in batch.values():
        for answer in answers:
            if not answer.done():
                answer.set_exception(error)
