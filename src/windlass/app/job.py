"""A job in the hands of the code that submitted it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from windlass.app.entropy import Ids
from windlass.core import template
from windlass.core.plan import Plan
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.engine import control, signals
from windlass.pure.argument import check_text, check_timeout
from windlass.pure.job_failed import JobCancelled as JobCancelled
from windlass.pure.job_failed import JobFailed as JobFailed
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.plans import plan_of
from windlass.views import explain, read

EVENTS_PAGE = 500
# How often a follower looks for new events. A person watches; nothing else waits for it.
FOLLOW_S = 0.2
_ids = Ids()


@dataclass(frozen=True, slots=True)
class Access:
    """What a handle reads with; shared by all handles of a connection."""

    db: Database
    artifacts: Artifacts
    resolver: template.Resolver
    waiter: read.Waiter


class Job:
    """A handle: an id and what can be asked of it. It holds nothing, so it can be made again from the id."""

    def __init__(
        self, access: Access, job_id: UUID, *, is_new: bool = True, is_heard: bool = False, plan: Plan | None = None
    ) -> None:
        self._access = access
        self._db = access.db
        self.id = job_id
        # False when an earlier submission with the same idempotency key made the job.
        self.is_new = is_new
        self._is_heard = is_heard
        self._plan = plan

    async def status(self) -> JobState:
        """Where the job stands."""
        return (await read.job(self._db, self.id)).state

    async def view(self) -> read.JobView:
        """Everything the database knows of the job, but for its steps."""
        return await read.job(self._db, self.id)

    async def steps(self) -> list[read.StepView]:
        """The job's steps, children of fan-outs among them."""
        return await read.steps(self._db, self.id)

    async def wait(self, timeout: float | None = None) -> JobState:  # noqa: ASYNC109  the job goes on
        """Wait for the end and say which it was; raises WaitTimeout when it does not come in time."""
        check_timeout(timeout)
        return (await self._access.waiter.wait(self.id, timeout)).state

    async def result(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109  the job goes on
        """Wait for the recipe's return value; raises JobFailed or JobCancelled when there is none."""
        check_timeout(timeout)
        access = self._access
        plan = self._plan or await plan_of(self._db, (await self.view()).plan)

        async def look() -> read.Ended | None:
            if (told := access.waiter.told(self.id)) and (end := await read.ended_as_told(access.resolver, plan, told)):
                return end
            return await read.ended(self._db, access.artifacts, access.resolver, plan, self.id)

        end = await access.waiter.until(self.id, look, timeout, is_heard=self._is_heard)
        if end.state is not JobState.COMPLETED:
            raise await failure_of(self._db, await self.view())
        return end.output

    async def events(self, *, follow: bool = True) -> AsyncIterator[read.EventView]:
        """Every event in order; with `follow`, also those to come, until the job has ended."""
        seen = 0
        while True:
            # The end is looked for before the events: what ended the job is then among them.
            is_over = not follow or await self.status() in JOB_TERMINAL
            while page := await read.events(self._db, self.id, after=seen, limit=EVENTS_PAGE):
                for event in page:
                    seen = event.seq
                    yield event
            if is_over:
                return
            await asyncio.sleep(FOLLOW_S)

    async def why(self, step: str | None = None) -> list[explain.Reason]:
        """What each unfinished step waits for; of the first 200 of them, if there are more."""
        return await explain.why(self._db, self.id, step, limit=explain.REASONS_MAX)

    async def send_event(self, name: str, body: Any = None, *, id: str | None = None) -> signals.Sent:
        """Tell the job something that a step of it waits for, or will: `delivered`, `kept` or `already`.

        The same `id` again changes nothing. Without one it is a new event each time.
        """
        check_text("name", name)
        own = str(_ids.new()) if id is None else id
        return await signals.send(self._db, self.id, name, {} if body is None else body, id=own, sender="caller")

    async def cancel(self, reason: str = "") -> None:
        """Ask for the end: open steps are cancelled, running ones are told to stop."""
        check_text("reason", reason)
        await control.cancel(self._db, self.id, reason=reason)

    def __repr__(self) -> str:
        return f"Job({self.id})"


async def failure_of(db: Database, view: read.JobView) -> JobFailed:
    """The error that stands for a job which ended badly, with the step that failed first."""
    fault = dict(view.error or {})
    nodes, _ = await read.overview(db, view.id)
    failed = [step for step in nodes if step.state is StepState.FAILED and step.finished_at is not None]
    name: str | None = None
    if failed and view.state is JobState.FAILED:
        first = min(failed, key=lambda step: (step.finished_at, step.no))
        name = (await plan_of(db, view.plan)).nodes[first.node].name
        # A job whose steps failed keeps the first fault; of a fan-out that is a child's, which says more.
        fault = fault or dict(first.error or {})
    kind = JobCancelled if view.state is JobState.CANCELLED else JobFailed
    return kind(view.id, view.state, name, fault)
