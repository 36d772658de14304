"""Test P: the cost of many waiting jobs: memory of every process, and queries while idle."""

import time

from bench.idle import labelled, server_mb, statements_per_s
from bench.machine import Watch, memory_mb
from bench.measures.run import Run
from bench.roster import WINDLASS
from bench.session import Session, SystemFailed

MEMORY = "P memory, worst process"
QUERIES = "P queries, worst process"
POSTGRES_MEMORY = "P memory, PostgreSQL"
JOBS = 100_000
IDLE_S = 30.0


async def parked(run: Run) -> None:
    """Measure the memory before and after, then the queries per second of each process while idle."""
    try:
        session = await run.session(WINDLASS, "windlass_parked")
        session.start()
        try:
            await _measure(run, session)
        finally:
            await session.stop()
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(MEMORY, "windlass", str(error))
        run.say(f"{MEMORY:24} windlass failed: {error}")


async def _measure(run: Run, session: Session) -> None:
    count = run.count(JOBS)
    processes = labelled([session.pid, *session.worker_pids])
    before = {pid: memory_mb(pid) for pid in processes}
    server_before = server_mb(run.servers.postgres)
    with Watch({}) as watch:
        session.ask("park", count=count)
        time.sleep(2)
    after = {pid: memory_mb(pid) for pid in processes}
    growth = {f"{processes[pid]} {pid}": round(after[pid] - before[pid], 1) for pid in processes}
    detail = {"jobs": count, "before_mb": {f"{processes[pid]} {pid}": round(before[pid], 1) for pid in before}}
    others = watch.load.others
    run.results.add(MEMORY, "windlass", "MB more", "lower", max(growth.values()), others, {**detail, "growth": growth})
    server_growth = server_mb(run.servers.postgres) - server_before
    run.results.add(POSTGRES_MEMORY, "postgresql", "MB more", "lower", server_growth, others)
    run.say(f"{MEMORY:24} {growth}")

    asked = await statements_per_s(run.servers.postgres, session.dsn, processes, IDLE_S)
    run.results.add(QUERIES, "windlass", "queries/s", "lower", max(asked.values(), default=0.0), others, asked)
    run.say(f"{QUERIES:24} {asked}")
