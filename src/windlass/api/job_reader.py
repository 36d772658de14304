"""Reads of jobs that share round trips: while a read is under way, the next requests gather.

Most requests about a job begin by reading it. At a high rate, separate reads would cost as much as a commit each.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from windlass.core.errors import NotFound
from windlass.store.database import Database
from windlass.views.read import JobView, jobs_of

TOGETHER_MAX = 200


class JobReader:
    """Reads jobs by id, many at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._waiting: dict[UUID, list[asyncio.Future[JobView | None]]] = {}
        self._task: asyncio.Task[None] | None = None
        # How many reads were requested.
        self.count = 0

    async def job(self, job_id: UUID) -> JobView:
        """Return the job as it is at some moment after the call."""
        self.count += 1
        answer: asyncio.Future[JobView | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, []).append(answer)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain(), name="windlass-job-reader")
        found = await answer
        if found is None:
            raise NotFound(f"there is no job {job_id}", remedy="GET /jobs lists yours")
        return found

    async def _drain(self) -> None:
        while self._waiting:
            ids = list(self._waiting)[:TOGETHER_MAX]
            batch = {job_id: self._waiting.pop(job_id) for job_id in ids}
            try:
                found = await jobs_of(self._db, ids)
            except Exception as error:
                _tell(batch, error)
                continue
            for job_id, answers in batch.items():
                for answer in answers:
                    if not answer.done():
                        answer.set_result(found.get(job_id))


def _tell(batch: dict[UUID, list[asyncio.Future[JobView | None]]], error: Exception) -> None:
    for answers in batch.values():
        for answer in answers:
            if not answer.done():
                answer.set_exception(error)
