"""Submitting together: jobs that are submitted at the same time share their commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from windlass.core.errors import Conflict
from windlass.core.observer import Observer
from windlass.engine.submit import BATCH_MAX, Accepted, Submission, commit
from windlass.store.database import Database

_STEPS_MAX = 20_000


class Submitter:
    """Lets concurrent submits share commits: while one commit is under way, the next batch gathers.

    Each caller is answered only after the commit that holds its job. An observer needs the clock to go with it.
    """

    def __init__(
        self, db: Database, observer: Observer | None = None, clock: Callable[[], float] | None = None
    ) -> None:
        self._db = db
        self._observer = observer
        self._clock = clock
        self._waiting: list[tuple[Submission, asyncio.Future[Accepted | Conflict]]] = []
        # Whether a commit is under way; whoever has it sees to those who wait.
        self._is_busy = False
        self._task: asyncio.Task[None] | None = None

    async def submit(self, submission: Submission) -> Accepted:
        """Make the job; raises Conflict."""
        submission.check()
        answer = await (self._put(submission) if self._is_busy else self._alone(submission))
        if isinstance(answer, Conflict):
            raise answer
        return answer

    async def submit_each(self, submissions: Sequence[Submission]) -> list[Accepted | Conflict]:
        """Make these jobs, in as few commits as they and others need; an answer each, in order.

        An error is raised after all of them were tried: some of the jobs may have been made.
        """
        for submission in submissions:
            submission.check()
        futures = [self._put(submission) for submission in submissions]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Conflict):
                raise answer
        return [answer for answer in answers if isinstance(answer, Accepted | Conflict)]

    async def _alone(self, submission: Submission) -> Accepted | Conflict:
        """Without a task in between, which on an idle machine costs as much as all else that is done here."""
        self._is_busy = True
        try:
            [answer] = await self._submit([submission])
            return answer
        finally:
            self._is_busy = False
            if self._waiting:
                self._start()

    def _put(self, submission: Submission) -> asyncio.Future[Accepted | Conflict]:
        future: asyncio.Future[Accepted | Conflict] = asyncio.get_running_loop().create_future()
        self._waiting.append((submission, future))
        if not self._is_busy:
            self._start()
        return future

    def _start(self) -> None:
        self._is_busy = True
        self._task = asyncio.create_task(self._drain(), name="windlass-submitter")

    async def _submit(self, submissions: list[Submission]) -> list[Accepted | Conflict]:
        if self._observer is None or self._clock is None:
            return await commit(self._db, submissions)
        start_s = self._clock()
        answers = await commit(self._db, submissions)
        self._observer.submitted([submission.job_id for submission in submissions], self._clock() - start_s)
        return answers

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._commit(self._take())
        finally:
            self._is_busy = False

    async def _commit(self, batch: list[tuple[Submission, asyncio.Future[Accepted | Conflict]]]) -> None:
        try:
            answers = await self._submit([submission for submission, _ in batch])
        except Exception as error:
            # One bad submission must not take its neighbours with it: each is told apart.
            await self._one_by_one(batch, error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)

    def _take(self) -> list[tuple[Submission, asyncio.Future[Accepted | Conflict]]]:
        steps = count = 0
        for submission, _ in self._waiting[:BATCH_MAX]:
            steps += len(submission.plan.nodes)
            if count and steps > _STEPS_MAX:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    async def _one_by_one(
        self, batch: list[tuple[Submission, asyncio.Future[Accepted | Conflict]]], error: Exception
    ) -> None:
        for submission, future in batch:
            if future.done():
                continue
            if len(batch) == 1:
                future.set_exception(error)
                continue
            try:
                future.set_result((await self._submit([submission]))[0])
            except Exception as own:
                future.set_exception(own)
