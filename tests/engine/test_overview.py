"""The statements of the overview and of dead letters go by indexes and read no more than they say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.outcome import Failure, Fault
from windlass.engine import control
from windlass.engine.loops.auditor import Auditor
from windlass.engine.loops.pruner import Pruner
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.views import overview, read

FILL = """
    INSERT INTO windlass.jobs (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input,
                               error, created_at, finished_at, due_at, trouble)
    SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'r', 'p', s, 'c' || n % 50, 0, 1, 1, 0, '{}',
           CASE WHEN s = 'FAILED' THEN '{"code":"x","message":"m"}'::json END, now(), now(),
           CASE WHEN s = 'QUEUED' THEN now() END, CASE WHEN s = 'FAILED' THEN s END
    FROM generate_series(1, 20000) AS n,
         LATERAL (SELECT CASE WHEN n % 9 = 0 THEN 'FAILED' WHEN n % 7 = 0 THEN 'QUEUED' ELSE 'COMPLETED' END AS s) x;
    INSERT INTO windlass.redriven
    SELECT id, NULL, now(), 'x' FROM windlass.jobs WHERE trouble = 'FAILED' AND caller > 'c3';
    INSERT INTO windlass.minutes
    SELECT date_trunc('minute', now()) - m * interval '1 minute', 'r' || r, 'COMPLETED', 0, 1
    FROM generate_series(0, 119) m, generate_series(1, 50) r;
    ANALYZE
"""


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        ("dead_letters", (100, 100), "jobs_failed"),
        ("dead_letters_caller", (100, 100, "c7"), "jobs_caller_trouble"),
        ("dead_letters_count", (100,), "jobs_failed"),
        ("dead_letters_count_caller", (100, "c7"), "jobs_caller_trouble"),
        ("overview_minutes", (60, 1000), "minutes_pkey"),
        ("overview_recipes", (60, 1000, 15), "minutes_pkey"),
        ("overview_ended_caller", (60, 100, "c7"), "jobs_caller"),
        ("activity_count", (100, 10), "jobs_due"),
        ("activity_count_caller", (100, 10, "c7"), "jobs_caller"),
        ("activity_open", (100,), "jobs_due"),
        ("overview_running", (100,), "steps_running"),
        ("recent_inputs", ("r", 100, 100, 50, 10), "jobs_pkey"),
        ("recent_inputs_caller", ("r", 100, 100, 50, 10, "c7"), "jobs_caller"),
        ("worker_steps", (100,), "steps_running"),
    ],
)
async def test_each_goes_by_its_index(db: Database, statement: str, values: tuple[Any, ...], index: str) -> None:
    async with db.connection() as connection:
        await connection.execute(FILL)
        text = sql(statement)
        for place in range(len(values), 0, -1):
            value = values[place - 1]
            spelled = "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
            text = text.replace(f"${place}", spelled)
        rows = await connection.fetch(f"EXPLAIN (ANALYZE, TIMING OFF) {text}")
    told = "\n".join(row[0] for row in rows)
    assert f"using {index} " in told, told
    # All of the table, or all of what was dealt with, is never read for a hundred rows.
    assert "Seq Scan on jobs" not in told and "Seq Scan on redriven" not in told and "Hash Anti Join" not in told, told


async def ended(rig: Rig) -> overview.Overview:
    while (await Auditor(rig.db).run_once()).is_more:
        pass
    return await overview.overview(rig.db, None)


async def test_jobs_are_counted_in_the_minute_of_their_end_and_forgotten_after_two_hours(rig: Rig) -> None:
    async def one(outcome: Failure | None = None) -> None:
        await rig.submit(plan(task("a")), correlation_id="c")
        rig.clock.advance(4)
        await rig.run_one(outcome)

    await one()
    rig.clock.advance(60)
    await one()
    await one(Failure(Fault("x", "y"), is_retryable=False))
    cancelled = await rig.submit(plan(task("a")), correlation_id="c")
    await control.cancel(rig.db, cancelled)
    told = await ended(rig)
    assert (sum(told.completed), sum(told.failed)) == (2, 1), "that somebody cancelled a job is no failure"
    assert told.completed[-1] + told.completed[-2] + told.completed[-3] == 2
    assert told.minutes[-1] <= told.as_of < told.minutes[-1] + timedelta(minutes=1)
    [recipe] = told.recipes
    assert (recipe.completed, recipe.failed) == (2, 1) and 3.8 <= (recipe.p50_s or 0) <= 4.2
    rig.clock.advance(3600)
    assert sum((await ended(rig)).completed) == 0
    rig.clock.advance(3700)
    await one()
    await ended(rig)
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.minutes") == 1


async def test_open_jobs_are_queued_or_run_or_wait(rig: Rig) -> None:
    from windlass.core.plan import Node, NodeKind

    await rig.submit(plan(task("a")))
    await rig.submit(plan(task("a")))
    await rig.claim(1)
    waiting = await rig.submit(plan(Node("yes", NodeKind.EVENT, run="approved"), recipe="asked"))
    await rig.loops.run_until_idle()
    told = await overview.overview(rig.db, None)
    assert told.totals == {"open": 3, "running": 1, "queued": 1, "waiting": 1, "sleeping": 0, "paused": 0}
    [person] = [one for one in told.attention if one.kind == "waiting_person"]
    assert (person.count, person.link) == (1, f"/jobs/{waiting}")
    assert (await overview.overview(rig.db, "local")).totals == told.totals
    assert (await overview.overview(rig.db, "eve")).totals["open"] == 0


async def test_a_queue_that_is_served_and_old_is_told(rig: Rig) -> None:
    await rig.submit(plan(task("a")))
    assert (await overview.overview(rig.db, None)).attention == []
    rig.clock.advance(overview.OLD_S + 1)
    from windlass.engine import workers

    await workers.enlist(rig.db, rig.ids.new(), host="h", pid=2, queues=["main_processing"], concurrency=1)
    kinds = [one.kind for one in (await overview.overview(rig.db, None)).attention]
    assert "old_queue" in kinds and "no_workers" not in kinds


async def test_retention_forgets_what_became_of_jobs_that_are_gone(rig: Rig) -> None:
    from windlass.engine import rerun

    job = await rig.submit(plan(task("a")))
    await rig.run_one(Failure(Fault("x", "y"), is_retryable=False))
    new = await rerun.retry(rig.db, job, rig.ids.new())
    rig.clock.advance(3600)
    await Pruner(rig.db, 60.0).run_once()
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.redriven") == 0
    assert (await read.job(rig.db, new)).retry_of == job
