"""Effects and their writers: which commits take one statement, what a moved queue means, the order of locks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.engine.lines import call, declare, slots
from tests.engine.rig import Rig, plan, task
from windlass.core.outcome import Cost, Failure, Fault, Report, Success
from windlass.core.plan import OnFailure, Plan
from windlass.core.route import Run, route
from windlass.core.states import StepState
from windlass.engine import budgets
from windlass.engine.claim import Claimed
from windlass.engine.settle import settle
from windlass.store import drafts, writers
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql
from windlass.testing.faults import FaultyDatabase
from windlass.testing.lock_order import out_of_order

S = StepState


class Listening(FaultyDatabase):
    """Keeps the text of every statement of its operations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.statements: list[str] = []

    async def attempt(self, operation: Any) -> Any:
        async def watched(connection: Any) -> Any:
            def see(record: Any) -> None:
                self.statements.append(record.query)

            connection.add_query_logger(see)
            try:
                return await operation(connection)
            finally:
                connection.remove_query_logger(see)

        return await super().attempt(watched)


async def statements_of(dsn: str, reports: list[Report]) -> list[str]:
    """The statements that settling these takes."""
    db = await Listening.open(dsn, max_size=1)
    try:
        settled = await settle(db, reports, spread=lambda: 0.0)
    finally:
        await db.close()
    assert all(settled.took_effect)
    return [text for text in db.statements if "windlass." in text or text.startswith("BEGIN")]


async def claimed(rig: Rig, of: Plan, name: str) -> Claimed:
    """The claim of this step; all others stay with the worker."""
    await rig.submit(of)
    await rig.loops.run_until_idle()
    return next(one for one in await rig.claim() if one.node == of.number[name])


async def test_a_plain_step_beside_a_providers_takes_one_statement(rig: Rig, dsn: str) -> None:
    await declare(rig.db)
    one = await claimed(rig, plan(task("a"), task("b", "a"), call("p"), task("q", "p")), "a")
    assert await statements_of(dsn, [one.report(Success("1"))]) == [sql("draft_complete")]


async def test_a_step_before_a_providers_takes_its_jobs_lock(rig: Rig, dsn: str) -> None:
    await declare(rig.db)
    one = await claimed(rig, plan(task("a"), call("p", "a")), "a")
    assert sql("draft_lock") in await statements_of(dsn, [one.report(Success("1"))])


async def test_a_plain_step_that_ends_its_job_by_failing_sweeps_the_lines(rig: Rig, dsn: str) -> None:
    """The slow path is chosen by what a decision touches: a sweep touches every step."""
    await declare(rig.db)
    one = await claimed(rig, plan(task("a"), call("p"), on_failure=OnFailure.STOP), "a")
    assert len(await slots(rig.db)) == 1
    failure = Failure(Fault("boom", "it broke"), is_retryable=False)
    assert sql("slot_sweep") in await statements_of(dsn, [one.report(failure)])
    assert await slots(rig.db) == []


async def requeued(db: Database, job: UUID, queue: str) -> None:
    """Route the job's first step to this queue."""

    async def operation(connection: Any) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [job])
            [draft] = await drafts.load(connection, {job: [0]}, lambda plan_hash: read_plan(connection, plan_hash))
            assert route(draft, 0, Run(queue=queue))
            await drafts.write(connection, [draft])

    await db.run(operation)


async def test_a_step_is_claimed_from_the_queue_that_routing_moved_it_to(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", when="${inputs.x}"), task("b", "a")), {"x": True})
    await requeued(rig.db, job, "gpu")
    assert await rig.claim() == []
    [one] = await rig.claim(queues=["gpu"])
    assert (one.job_id, one.no) == (job, 0)
    await rig.settle(one)
    assert [one.no for one in await rig.claim()] == [1], "the next step is in its own queue"


async def touching_all(rig: Rig) -> list[Report]:
    """Reports whose commit writes lines, costs, budgets and a provider's work."""
    await declare(rig.db, concurrency=9)
    reports = []
    for _ in range(3):
        one = await claimed(rig, plan(call("p", cost=2.0), task("q", "p")), "p")
        await budgets.set(rig.db, "job", str(one.job_id), 100)
        reports.append(one.report(Success("1"))._replace(cost=Cost("1.5")))
    return reports


async def test_a_commit_locks_rows_in_the_documented_order(rig: Rig, dsn: str) -> None:
    statements = await statements_of(dsn, await touching_all(rig))
    for name in ("draft_write", "work_moved", "slot_write", "cost_put", "budget_add"):
        assert sql(name) in statements, name
    assert out_of_order(statements) is None


async def test_writers_in_another_order_are_noticed(rig: Rig, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted flaw: the test above can fail."""
    monkeypatch.setattr(writers, "WRITERS", writers.WRITERS[::-1])
    wrong = out_of_order(await statements_of(dsn, await touching_all(rig)))
    assert wrong is not None and wrong.startswith("work_moved after budget_add")
