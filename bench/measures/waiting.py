"""Test X: the cost of many jobs with work at a provider: memory of every process, and queries while idle."""

import asyncio

from bench.external import Installation
from bench.idle import labelled, server_mb, statements_per_s
from bench.machine import Watch, memory_mb, wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.session import SystemFailed

MEMORY = "X memory, worst process"
QUERIES = "X queries, worst process"
QUERIES_NONE = "X queries, none parked"
POSTGRES_MEMORY = "X memory, PostgreSQL"
PARKING = "X handed over"
JOBS = 100_000
WARM = 200
# Followers query every few seconds, eight statements each: a short window may hold one query round more or less.
IDLE_S = 120.0
SETTLE_S = 1.0


async def waiting(run: Run) -> None:
    """Measure API, worker and engine: without work at the provider, and with the work of this many jobs."""
    try:
        installation = await Installation.make(run.servers.postgres, run.servers.folder / "waiting")
        try:
            installation.start()
            await _measure(run, installation)
        finally:
            installation.stop()
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(MEMORY, "windlass", str(error))
        run.say(f"{MEMORY:24} failed: {error}")


async def _measure(run: Run, installation: Installation) -> None:
    count, idle_s = run.count(JOBS), max(2.0, min(IDLE_S, IDLE_S * run.scale))
    postgres, dsn = run.servers.postgres, installation.dsn
    # This opens connections and makes plans. These jobs count too: the provider has slots for exactly all of them.
    warm = min(WARM, count // 2)
    await installation.park(warm)
    await asyncio.sleep(SETTLE_S)
    processes = labelled([installation.api.pid, installation.worker_pid])
    names = {pid: f"{label} {pid}" for pid, label in processes.items()}
    before = {pid: memory_mb(pid) for pid in processes}
    server_before = server_mb(postgres)
    quiet = await statements_per_s(postgres, dsn, processes, idle_s)
    run.results.add(QUERIES_NONE, "windlass", "queries/s", "lower", max(quiet.values()), 0.0, quiet)
    run.say(f"{QUERIES_NONE:24} {quiet}")
    wait_until_quiet(run.patience_s)
    with Watch({"worker": [installation.worker_pid], "server": [postgres.pid]}) as watch:
        seconds = await installation.park(count - warm)
    others = watch.load.others
    rate = (count - warm) / seconds
    cpu = cpu_us(watch.load, count - warm)
    run.results.add(PARKING, "windlass", "jobs/s", "higher", rate, others, {"seconds": seconds, **cpu})
    run.say(f"{PARKING:24} {rate:,.0f} jobs/s  others {others}  {cpu}")
    await asyncio.sleep(SETTLE_S)
    growth = {names[pid]: round(memory_mb(pid) - before[pid], 1) for pid in processes}
    detail = {"jobs": count, "before_mb": {names[pid]: round(mb, 1) for pid, mb in before.items()}, "growth": growth}
    run.results.add(MEMORY, "windlass", "MB more", "lower", max(growth.values()), others, detail)
    run.results.add(POSTGRES_MEMORY, "postgresql", "MB more", "lower", server_mb(postgres) - server_before, others)
    run.say(f"{MEMORY:24} {growth}")
    asked = await statements_per_s(postgres, dsn, processes, idle_s)
    run.results.add(QUERIES, "windlass", "queries/s", "lower", max(asked.values()), others, asked)
    run.say(f"{QUERIES:24} {asked}")
