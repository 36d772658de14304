"""Lets jobs that are submitted at the same time share their commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from windlass.core.errors import Conflict, Denied
from windlass.engine.group_commit import GroupCommit, Waiting
from windlass.engine.submit import BATCH_MAX, Accepted, Answer, Submission, commit
from windlass.pure.observer import Observer
from windlass.store.database import Database

_STEPS_MAX = 20_000


class Submitter:
    """Makes jobs by group commit. An observer needs `clock` too.

    With `gathers` a job waits for one turn of the loop: a server resumes many requests in one turn, and the first of
    them would otherwise commit alone.
    """

    def __init__(
        self,
        db: Database,
        observer: Observer | None = None,
        clock: Callable[[], float] | None = None,
        *,
        gathers: bool = False,
    ) -> None:
        self._gathers = gathers
        self._db = db
        self._observer = observer
        self._clock = clock
        self._group = GroupCommit("windlass-submitter", self._commit, _split)

    async def submit(self, submission: Submission) -> Accepted:
        """Make the job. Raises Conflict, or Denied by the policy."""
        submission.check()
        answer = await (self._group.put_soon(submission) if self._gathers else self._group.put(submission))
        if isinstance(answer, Conflict | Denied):
            raise answer
        return answer

    async def submit_each(self, submissions: Sequence[Submission]) -> list[Answer]:
        """Make these jobs in few commits, shared with concurrent submits. Returns a reply for each, in order.

        An error is raised after all submissions were tried: some of the jobs may exist.
        """
        for submission in submissions:
            submission.check()
        futures = [self._group.put_soon(submission) for submission in submissions]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Conflict | Denied):
                raise answer
        return [answer for answer in answers if isinstance(answer, Accepted | Conflict | Denied)]

    async def _commit(self, submissions: list[Submission]) -> list[Answer]:
        if self._observer is None or self._clock is None:
            return await commit(self._db, submissions)
        start_s = self._clock()
        answers = await commit(self._db, submissions)
        self._observer.submitted([submission.job_id for submission in submissions], self._clock() - start_s)
        return answers


_Waiting = Waiting[Submission, Answer]


def _split(waiting: _Waiting) -> tuple[_Waiting, _Waiting]:
    """Split off as many submissions as one statement should take: large plans make a short batch."""
    steps = count = 0
    for submission, _ in waiting[:BATCH_MAX]:
        steps += len(submission.plan.nodes)
        if count and steps > _STEPS_MAX:
            break
        count += 1
    return waiting[:count], waiting[count:]
