"""What the engine's tests share: a database on the test's clock, the loops, and the worker's side by hand."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from windlass.app.entropy import Ids
from windlass.core.errors import Conflict
from windlass.core.outcome import Outcome, Report, Success
from windlass.core.plan import Node, Plan
from windlass.core.states import JobState, StepState
from windlass.engine import claim, recipes, settle, submit, workers
from windlass.engine.claim import Claimed
from windlass.engine.loops.runner import LOOK_EVERY_S, Loops
from windlass.engine.submit import Submission
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock
from windlass.views import read

QUEUE = "main_processing"
# Most tests let hours pass, and their worker does not renew its lease.
LONG_S = 10 * 365 * 86400.0


async def undisturbed(db: Database) -> None:
    """Wait until no transaction outside the test, such as an analyze, hides from the feed what is committed now.

    Only transactions older than the newest commit can hide it, so later ones do not count.
    """
    newest = await db.run(lambda connection: connection.fetchval(_NEWEST))
    while await db.run(lambda connection: connection.fetchval(_DISTURBED, newest)):
        await asyncio.sleep(0.005)


_NEWEST = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_DISTURBED = """
    SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_xid::text::bigint < $1
                   AND (datname IS DISTINCT FROM current_database() OR backend_type <> 'client backend'))
"""


def plan(*nodes: Node, recipe: str = "r", **given: Any) -> Plan:
    return Plan(recipe, nodes, **given)


def task(name: str, *needs: str, **given: Any) -> Node:
    return Node(name, needs=needs, **{"run": name, **given})


class Rig:
    """One worker, one engine, one clock."""

    def __init__(self, db: Database, clock: VirtualClock, ids: Ids, artifacts: Artifacts) -> None:
        self.db = db
        self.clock = clock
        self.ids = ids
        self.artifacts = artifacts
        self.spread: Callable[[], float] = random.Random(7).random
        self.loops = Loops(db, artifacts, shared_evaluator(), new_id=ids.new, spread=lambda: 0.0)
        # A test's one look at the router ends when its expressions are evaluated, however slow the machine is.
        self.loops.router.patience_s = 60.0
        self.worker = ids.new()

    async def enlist(
        self, worker: UUID | None = None, *, lease_s: float = LONG_S, handlers: Iterable[str] = ()
    ) -> UUID:
        worker = worker or self.worker
        await workers.enlist(
            self.db, worker, host="h", pid=1, queues=[QUEUE], concurrency=9, lease_s=lease_s, handlers=handlers
        )
        return worker

    async def silence(self, seconds: float) -> None:
        """Time passes; engines look as often as they do, and no worker renews."""
        for _ in range(int(seconds // LOOK_EVERY_S)):
            self.clock.advance(LOOK_EVERY_S)
            await self.loops.rescuer.run_once()
        self.clock.advance(seconds % LOOK_EVERY_S)
        await self.loops.rescuer.run_once()

    async def submit(self, of: Plan, inputs: dict[str, Any] | None = None, **given: Any) -> UUID:
        await recipes.register(self.db, of)
        [answer] = await submit.submit(self.db, [Submission(of, inputs or {}, self.ids.new(), **given)])
        if isinstance(answer, Conflict):
            raise answer
        return answer.job_id

    async def claim(
        self, limit: int = 100, worker: UUID | None = None, queues: Sequence[str] = (QUEUE,)
    ) -> list[Claimed]:
        return await claim.claim(self.db, worker=worker or self.worker, queues=queues, limit=limit)

    async def claim_one(self, worker: UUID | None = None) -> Claimed:
        [one] = await self.claim(1, worker)
        return one

    async def settle(self, one: Claimed, outcome: Outcome | None = None) -> bool:
        report = Report(one.job_id, one.no, one.attempt, outcome or Success("1"))
        return (await settle.settle(self.db, [report], spread=lambda: 0.0)).took_effect[0]

    async def run_one(self, outcome: Outcome | None = None) -> Claimed:
        one = await self.claim_one()
        assert await self.settle(one, outcome)
        return one

    async def run_out(self, output: str = "1") -> None:
        """Loops and worker, until neither has anything to do at this moment."""
        while await self.loops.run_until_idle() + await self._work(output):
            pass

    async def _work(self, output: str) -> int:
        taken = await self.claim(500)
        reports = [Report(o.job_id, o.no, o.attempt, Success(output)) for o in taken]
        if reports:
            await settle.settle(self.db, reports, spread=lambda: 0.0)
        return len(taken)

    async def state(self, job: UUID) -> JobState:
        return (await read.job(self.db, job)).state

    async def states(self, job: UUID) -> list[StepState]:
        return [step.state for step in await read.steps(self.db, job)]

    async def types(self, job: UUID) -> list[str]:
        return [event.type for event in await read.events(self.db, job)]

    async def sole_job(self, recipe: str) -> UUID:
        [view] = await read.jobs(self.db, recipe=recipe)
        return view.id
