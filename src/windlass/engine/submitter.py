"""Submitting together: jobs that are submitted at the same time share their commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from windlass.core.errors import Conflict
from windlass.engine.group_commit import GroupCommit, Waiting
from windlass.engine.submit import BATCH_MAX, Accepted, Submission, commit
from windlass.pure.observer import Observer
from windlass.store.database import Database

_STEPS_MAX = 20_000


class Submitter:
    """Lets concurrent submits share commits. An observer needs the clock to go with it."""

    def __init__(
        self, db: Database, observer: Observer | None = None, clock: Callable[[], float] | None = None
    ) -> None:
        self._db = db
        self._observer = observer
        self._clock = clock
        self._group = GroupCommit("windlass-submitter", self._commit, _split)

    async def submit(self, submission: Submission) -> Accepted:
        """Make the job; raises Conflict."""
        submission.check()
        answer = await self._group.put(submission)
        if isinstance(answer, Conflict):
            raise answer
        return answer

    async def submit_each(self, submissions: Sequence[Submission]) -> list[Accepted | Conflict]:
        """Make these jobs, in as few commits as they and others need; an answer each, in order.

        An error is raised after all of them were tried: some of the jobs may have been made.
        """
        for submission in submissions:
            submission.check()
        futures = [self._group.put_soon(submission) for submission in submissions]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Conflict):
                raise answer
        return [answer for answer in answers if isinstance(answer, Accepted | Conflict)]

    async def _commit(self, submissions: list[Submission]) -> list[Accepted | Conflict]:
        if self._observer is None or self._clock is None:
            return await commit(self._db, submissions)
        start_s = self._clock()
        answers = await commit(self._db, submissions)
        self._observer.submitted([submission.job_id for submission in submissions], self._clock() - start_s)
        return answers


_Waiting = Waiting[Submission, Accepted | Conflict]


def _split(waiting: _Waiting) -> tuple[_Waiting, _Waiting]:
    """As many as one statement should take: a batch of large plans is a short one."""
    steps = count = 0
    for submission, _ in waiting[:BATCH_MAX]:
        steps += len(submission.plan.nodes)
        if count and steps > _STEPS_MAX:
            break
        count += 1
    return waiting[:count], waiting[count:]
