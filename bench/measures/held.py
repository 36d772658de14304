"""Test K: one-step jobs behind 100,000 held steps of a higher priority in the same queue, and without them."""

import asyncpg

from bench import windlass_app
from bench.measures.run import Run
from bench.measures.two_databases import Side, compare
from bench.session import tidy_up
from windlass.app.windlass import Windlass

FREE = "K no held steps"
CROWD = "K behind held steps"
HELD = 100_000
SUBMIT_BATCH = 1_000
# As a pause of each job leaves them; but without an expiry, so that the host does not wait for their end.
HOLD = """
    WITH job AS (UPDATE windlass.jobs SET is_paused = true, due_at = NULL)
    UPDATE windlass.steps SET state = 'HELD', holds = 1 WHERE state = 'QUEUED'
"""


async def fill(dsn: str, jobs: int) -> None:
    """Submit the jobs at the highest priority and hold their steps."""
    async with Windlass.connect(dsn) as windlass:
        for start in range(0, jobs, SUBMIT_BATCH):
            size = min(SUBMIT_BATCH, jobs - start)
            await windlass.submit_many(windlass_app.one, [{"n": 1}] * size, priority=100)
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(HOLD)
    finally:
        await connection.close()
    await tidy_up(dsn)


async def held(run: Run) -> None:
    """Measure the same jobs without held steps and behind them."""
    jobs = run.count(HELD)
    await compare(run, Side(FREE, "windlass_free"), Side(CROWD, "windlass_held"), lambda dsn: fill(dsn, jobs))
