"""Test H: throughput in a database with millions of finished jobs, and in an empty one."""

import asyncpg

from bench.measures.run import Run
from bench.measures.two_databases import Side, compare
from bench.session import tidy_up

EMPTY = "H without history"
FULL = "H with history"
JOBS = 2_000_000
CHUNK = 200_000

# Rows as a one-step job leaves them, one job every 30 ms up to now, in the order of their writing.
FILL = (
    """
    INSERT INTO windlass.jobs (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input,
                               created_at, started_at, finished_at, expires_at)
    SELECT bench_id(n, at), 'one', repeat('0', 64), 'COMPLETED', 'local', 0, 5, 1, 0, '{"n": 1}',
           at, at, at, at + interval '1 day'
    FROM generate_series($1::int, $2::int) AS n, LATERAL (SELECT $3::timestamptz + n * interval '30 ms' AS at)""",
    """
    INSERT INTO windlass.steps (job_id, no, node, state, queue, priority, unmet, attempt, timeout_s, output,
                                started_at, finished_at)
    SELECT bench_id(n, at), 0, 0, 'COMPLETED', 'default', 0, 0, 1, 600, '1', at, at
    FROM generate_series($1::int, $2::int) AS n, LATERAL (SELECT $3::timestamptz + n * interval '30 ms' AS at)""",
    """
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt)
    SELECT bench_id(n, at), seq, at,
           (ARRAY['job.submitted', 'job.processing', 'step.started', 'step.completed', 'job.completed'])[seq],
           'engine', CASE WHEN seq IN (3, 4) THEN 0 END, CASE WHEN seq IN (3, 4) THEN 1 END
    FROM generate_series($1::int, $2::int) AS n, LATERAL (SELECT $3::timestamptz + n * interval '30 ms' AS at),
         generate_series(1, 5) AS seq""",
)
FUNCTION = """
    CREATE FUNCTION bench_id(n int, at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE RETURN
        (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008'
         || substr(md5(n::text), 1, 15))::uuid;
"""


async def fill(dsn: str, jobs: int) -> None:
    """Write the history and let the server collect statistics."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET synchronous_commit = off")
        await connection.execute(FUNCTION)
        first = await connection.fetchval("SELECT now() - $1::int * interval '30 ms'", jobs)
        for start in range(1, jobs + 1, CHUNK):
            for statement in FILL:
                await connection.execute(statement, start, min(jobs, start + CHUNK - 1), first)
    finally:
        await connection.close()
    await tidy_up(dsn)


async def history(run: Run) -> None:
    """Measure the same jobs without history and with it."""
    jobs = run.count(JOBS)
    run.say(f"{FULL:24} filling in {jobs:,} finished jobs")
    await compare(run, Side(EMPTY, "windlass_empty"), Side(FULL, "windlass_history"), lambda dsn: fill(dsn, jobs))
