"""The SDK's handle of a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from windlass.app.entropy import Ids
from windlass.app.shown import shown_event, shown_job, shown_reason, shown_step
from windlass.client.views import Event, JobView, Reason, StepDocument
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
# How often `events` polls for new events. Only people watch them, so no other work depends on this delay.
FOLLOW_S = 0.2
_ids = Ids()


@dataclass(frozen=True, slots=True)
class Access:
    """The objects that a handle reads with; all handles of a connection share them."""

    db: Database
    artifacts: Artifacts
    resolver: template.Resolver
    waiter: read.Waiter


class Job:
    """A handle of a job. It needs only the id, so a program can make it again from the id."""

    def __init__(
        self, access: Access, job_id: UUID, *, is_new: bool = True, is_heard: bool = False, plan: Plan | None = None
    ) -> None:
        self._access = access
        self._db = access.db
        self.job_id = job_id
        # False when an earlier submission with the same idempotency key made the job.
        self.is_new = is_new
        self._is_heard = is_heard
        self._plan = plan

    async def status(self) -> JobState:
        """Return the job's status."""
        return (await self._row()).state

    async def view(self) -> JobView:
        """Return the job's document, as the API has it, without payloads and steps."""
        return shown_job(await self._row())

    async def input(self) -> Any:
        """Return the job's inputs."""
        return (await self._row()).input

    async def steps(self) -> list[StepDocument]:
        """Return the job's steps, including the children of fan-outs."""
        plan = await plan_of(self._db, (await self._row()).plan)
        return [shown_step(self.job_id, plan, step) for step in await read.steps(self._db, self.job_id)]

    async def _row(self) -> read.JobView:
        return await read.job(self._db, self.job_id)

    async def wait(self, timeout: float | None = None) -> JobState:  # noqa: ASYNC109  the job goes on
        """Wait for the job's end and return its final status; raise WaitTimeout after the timeout."""
        check_timeout(timeout)
        return (await self._access.waiter.wait(self.job_id, timeout)).state

    async def result(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109  the job goes on
        """Wait for the job and return its output; raise JobFailed or JobCancelled if it has none."""
        check_timeout(timeout)
        access = self._access
        plan = self._plan or await plan_of(self._db, (await self._row()).plan)

        async def look() -> read.Ended | None:
            if (told := access.waiter.told(self.job_id)) and (
                end := await read.ended_as_told(access.resolver, plan, told)
            ):
                return end
            return await read.ended(self._db, access.artifacts, access.resolver, plan, self.job_id)

        end = await access.waiter.until(self.job_id, look, timeout, is_heard=self._is_heard)
        if end.state is not JobState.COMPLETED:
            raise await failure_of(self._db, await self._row())
        return end.output

    async def events(self, *, follow: bool = True) -> AsyncIterator[Event]:
        """Yield every event in order; with `follow`, also future events until the job ends."""
        seen = 0
        while True:
            # The status is read before the events, so that the events of an ended job include its end.
            is_over = not follow or await self.status() in JOB_TERMINAL
            while page := await read.events(self._db, self.job_id, after=seen, limit=EVENTS_PAGE):
                for event in page:
                    seen = event.seq
                    yield shown_event(self.job_id, event)
            if is_over:
                return
            await asyncio.sleep(FOLLOW_S)

    async def why(self, step: str | None = None) -> list[Reason]:
        """Return what each unfinished step waits for, for the first 200 steps at most."""
        found = await explain.why(self._db, self.job_id, step, limit=explain.REASONS_MAX)
        return [shown_reason(reason) for reason in found]

    async def send_event(self, name: str, body: Any = None, *, id: str | None = None) -> signals.Sent:
        """Send an event to the job, for a step that waits for it now or later. Return `delivered`, `kept` or `already`.

        An event with a known `id` changes nothing. Without an `id` each call sends a new event.
        """
        check_text("name", name)
        own = str(_ids.new()) if id is None else id
        return await signals.send(self._db, self.job_id, name, {} if body is None else body, id=own, sender="caller")

    async def cancel(self, reason: str = "", *, undo: bool = True) -> None:
        """Cancel the job: open steps are cancelled, and running steps are asked to stop.

        The effects of finished steps are undone; `undo=False` keeps them.
        """
        check_text("reason", reason)
        await control.cancel(self._db, self.job_id, reason=reason, undo=undo)

    def __repr__(self) -> str:
        return f"Job({self.job_id})"


async def failure_of(db: Database, view: read.JobView) -> JobFailed:
    """Return the error for a job that did not complete, with the step that failed first."""
    fault = dict(view.error or {})
    nodes, _ = await read.overview(db, view.id)
    failed = [step for step in nodes if step.state is StepState.FAILED and step.finished_at is not None]
    name: str | None = None
    if failed and view.state in (JobState.FAILED, JobState.TIMEOUT):
        first = min(failed, key=lambda step: (step.finished_at, step.no))
        name = (await plan_of(db, view.plan)).nodes[first.node].name
        # A job whose steps failed keeps the first fault. For a fan-out that is a child's fault, which says more.
        fault = fault or dict(first.error or {})
    kind = JobCancelled if view.state is JobState.CANCELLED else JobFailed
    return kind(view.id, view.state, name, fault)
