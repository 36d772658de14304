"""Constraints that the engine enforces, whatever the handler does."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from tests.engine.test_door import consistent, document, put, row
from windlass.core.outcome import Failure, Fault
from windlass.core.retry import Retry
from windlass.core.states import JobState, StepState
from windlass.views import read
from windlass.views.decisions import decisions

S = StepState


def limited(constraints: str) -> str:
    return document(f"{{id: tight, match: {{topics: [job.r]}}, decision: allow, constraints: {constraints}}}")


async def test_a_job_ends_when_the_policy_says_that_its_time_is_over(rig: Rig) -> None:
    await put(rig, limited("{budgets: {max_runtime_ms: 60000}}"))
    job = await rig.submit(plan(task("a")), deadline_s=600.0)
    found = await row(rig, job)
    assert (found["deadline_at"] - found["created_at"]).total_seconds() == 60
    rig.clock.advance(61)
    await rig.loops.run_until_idle()
    assert await rig.state(job) is JobState.TIMEOUT


async def test_a_step_is_not_tried_more_often_than_the_policy_allows(rig: Rig) -> None:
    await rig.enlist()
    await put(rig, limited("{budgets: {max_retries: 1}}"))
    job = await rig.submit(plan(task("a", retry=Retry(max_attempts=5))))
    for _ in range(2):
        await rig.run_one(Failure(Fault("boom", "it broke")))
        rig.clock.advance(3_600)
        await rig.loops.run_until_idle()
    view = await read.job(rig.db, job)
    assert view.state is JobState.FAILED and view.error is not None
    assert view.error["code"] == "max_retries_exceeded" and "boom: it broke" in view.error["message"]
    await consistent(rig)


async def test_jobs_beyond_the_limit_wait_until_one_has_ended(rig: Rig) -> None:
    await rig.enlist()
    await put(rig, limited("{budgets: {max_concurrent_jobs: 2}}"))
    jobs = [await rig.submit(plan(task("a"), task("b", "a"))) for _ in range(4)]
    assert [await rig.state(job) for job in jobs] == [JobState.QUEUED] * 2 + [JobState.PENDING] * 2
    first = await rig.claim_one()
    # The place is the job's, not its first step's.
    assert await rig.settle(first)
    rig.clock.advance(31)
    await rig.loops.run_until_idle()
    assert [await rig.state(job) for job in jobs].count(JobState.PENDING) == 2
    for _ in range(6):
        await rig.run_out()
        assert len({await rig.state(job) for job in jobs}) >= 1
        rig.clock.advance(31)
    assert {await rig.state(job) for job in jobs} == {JobState.COMPLETED}
    await consistent(rig)


@pytest.mark.parametrize("newer", [True, False])
async def test_a_newer_policy_limits_jobs_that_go_on(rig: Rig, newer: bool) -> None:
    await rig.enlist()
    await put(rig, document("{id: go, match: {topics: [job.r]}, decision: allow}"))
    job = await rig.submit(plan(task("a", retry=Retry(max_attempts=5))))
    if newer:
        await put(rig, limited("{budgets: {max_retries: 0}}"))
    await rig.run_one(Failure(Fault("boom", "it broke")))
    assert await rig.states(job) == [S.FAILED if newer else S.PARKED]


async def test_the_decisions_say_who_enforces_each_limit(rig: Rig) -> None:
    no = await put(rig, limited("{budgets: {max_retries: 1}, sandbox: {isolated: true}, max_output_bytes: 10}"))
    job: UUID = await rig.submit(plan(task("a")))
    found = await decisions(rig.db, job)
    assert (found.policy, found.rule) == (no, "tight")
    [one] = found.verdicts
    assert (one.decision, one.edge) == ("allow_with_constraints", "submit")
    assert one.enforced == {"max_retries": "engine", "isolated": "handler", "max_output_bytes": "engine"}


@pytest.mark.parametrize(("asked", "most"), [(None, "2.5"), ("1", "1"), ("9", "2.5")])
async def test_a_job_may_not_spend_more_than_the_policy_allows(rig: Rig, asked: str | None, most: str) -> None:
    await put(rig, limited("{budgets: {max_cost: 2.5}}"))
    job = await rig.submit(plan(task("a")), budget=None if asked is None else Decimal(asked))
    async with rig.db.connection() as connection:
        found = await connection.fetchval("SELECT most FROM windlass.budgets WHERE name = $1", str(job))
    assert found == Decimal(most)
