"""Test H: throughput in a database that holds millions of finished jobs, against one that holds none."""

import asyncpg

from bench.machine import wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.roster import WINDLASS
from bench.session import SystemFailed, make_database, tidy_up

EMPTY = "H without history"
FULL = "H with history"
JOBS = 2_000_000
CHUNK = 200_000

# Rows as a one-step job leaves them, one every 30 ms up to now, in the order in which they would have been written.
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
    """Write the history and let the server learn its statistics."""
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
    """The same jobs in two databases of the same server, in turn."""
    count = run.count(WINDLASS.jobs)
    try:
        empty = await run.session(WINDLASS, "windlass_empty")
        full = await run.session(WINDLASS, "windlass_history")
        run.say(f"{FULL:24} filling in {run.count(JOBS):,} finished jobs")
        await fill(full.dsn, run.count(JOBS))
        for _ in range(run.repeats):
            for test, session in ((EMPTY, empty), (FULL, full)):
                session.start()
                wait_until_quiet(run.patience_s)
                try:
                    answer, load = session.measure("jobs", count=count)
                finally:
                    await session.stop()
                rate = count / answer["seconds"]
                run.results.add(test, "windlass", "jobs/s", "higher", rate, load.others, cpu_us(load, count))
                run.say(f"{test:24} {'windlass':14} {rate:12,.0f} jobs/s  others {load.others}")
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(FULL, "windlass", str(error))
        run.say(f"{FULL:24} windlass failed: {error}")
    finally:
        # Gigabytes that nothing else needs.
        for name in ("windlass_empty", "windlass_history"):
            if session := run.sessions.pop(name, None):
                session.close()
                await make_database(run.servers.postgres, name)
