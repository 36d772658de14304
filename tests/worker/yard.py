"""What the worker's tests share: plans of a few nodes, a database, and workers on queues of their own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.worker.handlers import STEPS
from windlass.app.entropy import Ids
from windlass.core.plan import Node, Plan
from windlass.engine.loops.runner import Loops
from windlass.engine.submit import Submission, submit
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.plans import store_plan
from windlass.views import read
from windlass.worker.worker import Worker

PATIENCE_S = 60.0


def node(run: str, name: str | None = None, **given: Any) -> Node:
    """A node as its step would make it."""
    step = STEPS[run]
    values: dict[str, Any] = {"retry": step.asks.retry, "timeout_s": step.asks.timeout_s, "with_": {}} | given
    return Node(name=name or run, run=run, **values)


@dataclass
class Yard:
    db: Database
    dsn: str
    folder: Path
    artifacts: FolderArtifacts
    evaluator: Evaluator
    ids: Ids = field(default_factory=Ids)

    def __post_init__(self) -> None:
        # Tests share a database; a queue of its own keeps each one's work apart.
        self.queue = f"q{self.ids.new().hex}"
        self.waiter = read.Waiter(self.db)

    def plan(self, *nodes: Node) -> Plan:
        """A plan of these nodes, in this test's queue."""
        return Plan(recipe=self.queue, nodes=tuple(replace(one, queue=self.queue) for one in nodes))

    async def submit(self, *nodes: Node, inputs: dict[str, Any] | None = None, count: int = 1) -> list[UUID]:
        """Jobs of one plan."""
        plan = self.plan(*nodes)
        await store_plan(self.db, plan)
        jobs = [Submission(plan, inputs or {}, self.ids.new()) for _ in range(count)]
        return [accepted.job_id for accepted in await submit(self.db, jobs)]

    def worker(self, **given: Any) -> Worker:
        """A worker of this test's queue, not yet running."""
        settings: dict[str, Any] = {"heartbeat": "loop", "concurrency": 20, "processes": 2, "drain_s": 10.0} | given
        return Worker(
            self.db,
            settings.pop("steps", STEPS),
            artifacts=self.artifacts,
            resolver=self.evaluator,
            ids=self.ids,
            spread=random.random,
            queues=[self.queue],
            **settings,
        )

    @asynccontextmanager
    async def working(self, **given: Any) -> AsyncIterator[Worker]:
        """A worker that runs while the block does, and drains at its end."""
        worker = self.worker(**given)
        task = asyncio.create_task(worker.run())
        try:
            await until(worker.ready.is_set, task)
            yield worker
        finally:
            worker.stop()
            await asyncio.wait_for(task, PATIENCE_S)

    @asynccontextmanager
    async def loops(self) -> AsyncIterator[Loops]:
        """The engine's duties: timers, lost workers, routing."""
        loops = Loops(self.db, self.artifacts, self.evaluator, new_id=self.ids.new, spread=random.random)
        await loops.start()
        try:
            yield loops
        finally:
            await loops.stop()

    async def end(self, job_id: UUID) -> read.JobView:
        """The job, once it has ended."""
        return await self.waiter.wait(job_id, PATIENCE_S)

    async def step(self, job_id: UUID, no: int = 0) -> read.StepView:
        """A step as it is now."""
        return next(step for step in await read.steps(self.db, job_id) if step.no == no)

    async def events(self, job_id: UUID, kind: str) -> list[read.EventView]:
        """The job's events of one type."""
        return [event for event in await read.events(self.db, job_id) if event.type == kind]


async def until(is_true: Callable[[], bool], *tasks: asyncio.Task[Any]) -> None:
    """Return when it is true; a task that ends meanwhile ends the wait with its error."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_true():
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.005)


async def until_state(yard: Yard, job_id: UUID, *states: str, no: int = 0) -> read.StepView:
    """The step, once it is in one of these states."""
    async with asyncio.timeout(PATIENCE_S):
        while (step := await yard.step(job_id, no)).state not in states:
            await asyncio.sleep(0.02)
    return step
