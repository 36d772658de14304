"""Holds at the database: a job may be born held, and a crowd of held steps slows no claim."""

from __future__ import annotations

from uuid import UUID

import asyncpg
import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.hold import Hold
from windlass.core.outcome import Failure, Fault
from windlass.core.plan import Plan
from windlass.core.states import JobState, StepState
from windlass.engine import rerun
from windlass.engine.policies import Current
from windlass.engine.submit import Accepted, Submission, insert, submit
from windlass.store import drafts
from windlass.store.plans import read_plan, store_plan
from windlass.views import explain, read

TWO = plan(task("a"), task("b", "a"))
ROUTED = plan(task("a", when="inputs.x"))
CROWD = 100_000
# A claim of one step looks at its lane, its row and its job's.
READS_MAX = 50


async def release(rig: Rig, job_id: UUID, hold: Hold) -> None:
    """What an owner does to remove its hold from all steps of a job."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [job_id])
            draft = await drafts.load_open(connection, job_id, (StepState.HELD,), lambda h: read_plan(connection, h))
            assert draft is not None
            for step in draft.steps.values():
                draft.release(step, hold)
            await drafts.write(connection, [draft])

    await rig.db.run(operation)


async def held(rig: Rig, of: Plan = TWO, **inputs: bool) -> UUID:
    """A job that is submitted with a hold."""
    await store_plan(rig.db, of)
    job_id = rig.ids.new()
    await submit(rig.db, [Submission(of, inputs, job_id, holds=Hold.PAUSED)])
    return job_id


@pytest.mark.covers("SCR-05", "SCR-15")
async def test_a_job_that_is_born_held_is_pending_until_its_last_hold_is_removed(rig: Rig) -> None:
    job = await held(rig)
    assert await rig.state(job) is JobState.PENDING
    assert await rig.states(job) == ["HELD", "BLOCKED"]
    assert await rig.claim() == []
    await release(rig, job, Hold.SLOT)
    assert await rig.state(job) is JobState.PENDING
    await release(rig, job, Hold.PAUSED)
    assert await rig.state(job) is JobState.QUEUED
    await rig.run_out()
    assert await rig.state(job) is JobState.COMPLETED
    kinds = [event.type for event in await read.events(rig.db, job)]
    assert kinds[:4] == ["job.submitted", "job.queued", "step.queued", "job.processing"]


async def test_many_jobs_that_are_born_held_are_held_each(rig: Rig) -> None:
    await store_plan(rig.db, TWO)
    ids = [rig.ids.new() for _ in range(3)]
    wanted = [Submission(TWO, {}, job, holds=Hold.PAUSED if i == 1 else Hold(0)) for i, job in enumerate(ids)]
    await submit(rig.db, wanted)
    assert [await rig.state(job) for job in ids] == [JobState.QUEUED, JobState.PENDING, JobState.QUEUED]
    assert [(await rig.states(job))[0] for job in ids] == ["QUEUED", "HELD", "QUEUED"]


async def test_a_held_step_that_needs_the_router_is_routed_after_its_hold(rig: Rig) -> None:
    job = await held(rig, ROUTED, x=True)
    await rig.loops.run_until_idle()
    assert await rig.states(job) == ["HELD"]
    await release(rig, job, Hold.PAUSED)
    assert (await rig.state(job), await rig.states(job)) == (JobState.PENDING, ["READY"])
    await rig.run_out()
    assert await rig.state(job) is JobState.COMPLETED


async def test_why_names_every_hold(rig: Rig) -> None:
    job = await held(rig, ROUTED, x=True)
    [reason] = await explain.why(rig.db, job)
    assert reason.detail["holds"] == ("paused", "route")
    assert reason.because == "the job is paused; the engine has yet to resolve its condition or fan-out"


async def test_a_rerun_keeps_the_holds_that_it_is_submitted_with(rig: Rig) -> None:
    """Nothing submits a re-run with holds yet; the rows that it starts with must not lose them."""
    job = await rig.submit(TWO)
    await rig.run_one(Failure(Fault("x", ""), is_retryable=False))
    new = Submission(TWO, {}, rig.ids.new(), holds=Hold.PAUSED, retry_of=job)

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            [answer] = await insert(connection, [new], Current())
            assert isinstance(answer, Accepted)
            await rerun.keep(connection, job, new, answer, "test")

    await rig.db.run(operation)
    assert (await rig.state(new.job_id), await rig.states(new.job_id)) == (JobState.PENDING, ["HELD", "BLOCKED"])


async def test_the_database_refuses_a_queued_step_with_a_hold(rig: Rig) -> None:
    job = await held(rig)
    async with rig.db.connection() as connection:
        for change in ("state = 'QUEUED'", "holds = 0"):
            with pytest.raises(asyncpg.CheckViolationError):
                await connection.execute(f"UPDATE windlass.steps SET {change} WHERE job_id = $1 AND no = 0", job)


async def test_a_crowd_of_held_steps_before_it_costs_a_claim_no_look(rig: Rig, dsn: str) -> None:
    """Held steps are in no index that a claim reads, in any number and of any priority."""
    job = await held(rig)
    behind = await rig.submit(plan(task("a")))
    outside = await asyncpg.connect(dsn)
    try:
        await outside.execute(
            "INSERT INTO windlass.steps"
            " (job_id, no, node, index, state, queue, priority, unmet, timeout_s, lane, holds)"
            " SELECT job_id, g.n, 0, g.n, 'HELD', queue, 100, 0, timeout_s, lane, 1"
            " FROM windlass.steps, generate_series(10, 9 + $2::int) AS g (n) WHERE job_id = $1 AND no = 0",
            job,
            CROWD,
        )
        before = await _reads(rig, outside)
        [claimed] = await rig.claim()
        assert claimed.job_id == behind
        assert await _reads(rig, outside) - before <= READS_MAX
    finally:
        await outside.close()


async def _reads(rig: Rig, outside: asyncpg.Connection) -> int:
    """Rows and index entries of steps that both connections have read so far."""
    flush = "SELECT pg_stat_force_next_flush()"
    await rig.db.run(lambda connection: connection.execute(flush))
    # The statement that made the crowd read steps too. The server may count that seconds later.
    await outside.execute(flush)
    await outside.execute("SELECT pg_stat_clear_snapshot()")
    return int(await outside.fetchval(_READS))


_READS = """
    SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'windlass' AND relname = 'steps')
         + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'windlass' AND relname = 'steps')
"""
